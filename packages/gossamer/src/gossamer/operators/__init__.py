"""The operators, one file each: a script, and the function that calls its kernels."""

from gossamer.operators.by_name import NAMES, operator_named, product_names

__all__ = ["NAMES", "operator_named", "product_names"]
