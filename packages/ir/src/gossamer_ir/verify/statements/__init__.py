"""Checks of statements."""
