"""Coordinate stage to position stage: sparse iterations become loops."""

# Other expressions: nothing is concluded from them.
