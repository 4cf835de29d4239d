"""Parallel loops, whose chunks threads take."""
