"""Writes script text, one module for each kind of node."""
