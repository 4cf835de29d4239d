"""Decisions on grids of threads."""
