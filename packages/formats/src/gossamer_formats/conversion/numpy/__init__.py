"""Conversions by NumPy: of few elements, and of all that programs leave to it."""
