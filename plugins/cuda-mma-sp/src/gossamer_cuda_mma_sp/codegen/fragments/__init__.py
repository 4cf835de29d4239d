"""Buffers in the fragments of matrix instructions, which the lanes of a warp hold together."""

# Other statements: refused if they access fragments.
