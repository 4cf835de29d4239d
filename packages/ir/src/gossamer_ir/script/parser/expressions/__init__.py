"""Expressions and calls in expressions."""
