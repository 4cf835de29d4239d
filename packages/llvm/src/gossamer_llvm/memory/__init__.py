"""Loads, stores, allocations, atomic accumulations."""
