"""Primitives that take the user's word for what they cannot prove."""
