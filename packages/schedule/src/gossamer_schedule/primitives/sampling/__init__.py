"""Primitives that draw random values and record them as decisions of the trace."""
