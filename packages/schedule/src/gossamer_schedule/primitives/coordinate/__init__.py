"""Primitives that transform sparse iterations at the coordinate stage."""
