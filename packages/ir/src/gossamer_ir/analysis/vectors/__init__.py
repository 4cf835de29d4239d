"""Vectors: their lanes, and whether their number is known."""
