"""Statements as Python functions of the frame."""
