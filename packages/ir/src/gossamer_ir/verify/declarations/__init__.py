"""Checks of what functions and formats declare."""
