"""Tensors from plain arrays, from files, and from and to SciPy."""
