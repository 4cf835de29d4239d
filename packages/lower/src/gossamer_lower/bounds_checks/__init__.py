"""Bounds checks of accesses that are not proved in bounds: the passes, and the analysis that others use."""
