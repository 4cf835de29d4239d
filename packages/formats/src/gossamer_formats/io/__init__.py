"""Tensors from plain arrays, and from and to files, SciPy and torch."""
