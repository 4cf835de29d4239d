"""Passes, primitives and code generators with one planted defect each, which random programs must detect."""
