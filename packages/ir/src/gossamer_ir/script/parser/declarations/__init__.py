"""Declarations of a function: parameters, axes, buffers, facts and attributes."""
