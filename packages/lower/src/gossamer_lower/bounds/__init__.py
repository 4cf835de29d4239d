"""Checks of accesses that are not proved in bounds, and a report of these."""
