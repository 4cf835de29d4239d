"""Bounds checks of accesses that are not proved in bounds, for passes of several folders."""
