"""Loops that are unrolled, peeled, split or unswitched."""

# Other expressions: not optimized.
