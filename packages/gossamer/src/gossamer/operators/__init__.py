"""The operators, one file each: a script, and the function that calls its kernels."""

from gossamer.operators.by_name import (
    ALL_NAMES,
    N_M_NAMES,
    NAMES,
    is_operator_name,
    operator_named,
    product_names,
)

__all__ = ["ALL_NAMES", "NAMES", "N_M_NAMES", "is_operator_name", "operator_named", "product_names"]
