"""Lookups of coordinates, and the loops over fused axes."""
