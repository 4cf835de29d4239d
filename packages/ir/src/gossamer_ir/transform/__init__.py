"""Transformations: constants for parameters, other dtypes, tensors in parts, copies with fresh names; and
what operators add to their programs: a factor, added sums, whole blocks."""
