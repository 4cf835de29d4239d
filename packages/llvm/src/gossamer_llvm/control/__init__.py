"""Control flow, and calls between functions."""

# Other expressions: not optimized.
