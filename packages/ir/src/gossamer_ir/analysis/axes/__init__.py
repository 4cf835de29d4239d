"""Axes of formats: their facts, the numbers of their elements, the elements that they store."""
