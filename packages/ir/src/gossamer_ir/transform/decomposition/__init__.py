"""Stores sparse tensors in parts of several formats (`decompose_format`)."""

# Other expressions: nothing is concluded from them.
