"""Primitives that skip a proof of legality and mark the function as unsafe."""
