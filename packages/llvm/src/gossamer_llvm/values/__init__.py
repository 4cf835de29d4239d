"""Expressions: arithmetic, constants, vectors, masks."""
