"""Primitives that draw a value and record the choice."""
