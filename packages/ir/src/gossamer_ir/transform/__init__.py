"""Rewrites of whole modules: fixed sizes and scalars, other dtypes."""
