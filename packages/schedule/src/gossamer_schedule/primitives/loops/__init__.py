"""Primitives that transform loops: their iterations, their order and how they are executed."""

# Other expressions: nothing is concluded from them.
