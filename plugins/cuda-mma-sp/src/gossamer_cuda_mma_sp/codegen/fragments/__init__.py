"""Buffers in the fragments of matrix instructions, which lanes of one warp or of four hold together."""

# Other statements: refused if they access fragments.
