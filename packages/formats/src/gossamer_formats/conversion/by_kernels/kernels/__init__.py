"""Kernels of conversions: loop nests, statements and arguments."""
