"""Flat modules to PTX."""
