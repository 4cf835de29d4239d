"""Passes that insert and hoist guards: checks of accesses that are not proved in bounds."""
