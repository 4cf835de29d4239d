"""Loops that are unrolled, peeled, split or unswitched."""

# Other statements: stay, or only their bodies change.
# Other expressions: not optimized.
