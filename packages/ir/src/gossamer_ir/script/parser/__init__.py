"""Reads script text, one module for each kind of statement or argument."""
