"""Primitives on loops: their iterations, their order, and what runs them."""
