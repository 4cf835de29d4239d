"""Parallel regions and atomic accumulations."""
