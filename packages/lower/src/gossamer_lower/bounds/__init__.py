"""Checks of accesses that are not proved in bounds."""
