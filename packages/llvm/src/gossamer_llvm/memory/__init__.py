"""Loads, stores, allocations, atomic accumulations."""

# Other expressions: not optimized.
