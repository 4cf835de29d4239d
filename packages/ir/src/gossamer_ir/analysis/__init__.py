"""Analyses of functions: accesses, bounds, invariants, regions."""
