"""Bounds of values at run time, and the overflow that they exclude."""
