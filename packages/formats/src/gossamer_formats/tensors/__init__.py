"""Sparse tensors: their class, conversions, pruning, and exchange with SciPy, torch and plain arrays."""
