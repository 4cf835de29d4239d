"""Checks of expressions and accesses, and their dtypes."""
