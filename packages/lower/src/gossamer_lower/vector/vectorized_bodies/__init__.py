"""The body of a vectorized loop: its statements in vector form, and reductions of lanes."""
