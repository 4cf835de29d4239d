"""Primitives on sparse iterations, at the coordinate stage."""
