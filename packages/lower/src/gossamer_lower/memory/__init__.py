"""Passes that decide where buffers are allocated, and how large they are."""

# Other expressions: nothing is concluded from them.
