"""Vectorized loops become vector code."""

# Other operations: their operands are visited.
# Other expressions: not optimized.
