"""Matrices that every kernel has to survive, and what products of them are."""
