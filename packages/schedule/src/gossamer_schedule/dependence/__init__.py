"""Dependences: which iterations access the same elements, and whether they may be exchanged."""
