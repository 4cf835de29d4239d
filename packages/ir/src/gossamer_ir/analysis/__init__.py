"""Analyses of functions: accesses, bounds, invariants, regions."""

# Other expressions and operations: nothing is concluded from them.
