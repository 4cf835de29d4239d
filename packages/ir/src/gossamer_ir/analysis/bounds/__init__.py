"""Bounds of values at run time, and what follows about overflow."""
