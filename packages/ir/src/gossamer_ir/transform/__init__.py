"""Transformations: constants for parameters, other dtypes, tensors in parts, copies with fresh names."""
