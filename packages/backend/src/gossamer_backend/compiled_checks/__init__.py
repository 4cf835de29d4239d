"""Checks of index arrays by a compiled kernel."""
