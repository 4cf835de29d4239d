"""Vectorized loops become vector code."""

# Other expressions: not optimized.
