"""Transformations of whole modules: constant sizes and scalars, other dtypes."""
