"""Proofs that accesses are in bounds where a primitive evaluates them, and rewrites that keep them so."""
