"""Expressions as Python functions of the frame."""
