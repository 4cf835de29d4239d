"""Tensors from and to files."""
