"""Conversions by NumPy, of few elements and of all that kernels leave to it: read, then stored."""
