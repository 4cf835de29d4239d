"""Computations that depend on index arrays only: searches that an inspector runs once, in a kernel of their
own, known arrays, and the parameters that are then unused."""
