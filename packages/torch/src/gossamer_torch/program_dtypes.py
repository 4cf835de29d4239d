"""The dtypes for which the program of a custom operator is compiled: those of the tensors of a call."""

from __future__ import annotations

import torch

from gossamer_ir.core.dtypes import DType
from gossamer_torch.checks import INDEX_TENSOR_DTYPES

PROGRAM_DTYPES = (torch.float32, torch.float64)
"""The dtypes of floats for which programs are compiled."""


def array_dtypes(declared: str) -> tuple[torch.dtype, ...]:
    """Return the dtypes that a tensor may have for an array of a program.

    >>> array_dtypes("float32")
    (torch.float32, torch.float64)
    """
    dtype = DType.parse(declared)
    if dtype.is_float:
        return PROGRAM_DTYPES
    if declared in ("int32", "int64"):
        return INDEX_TENSOR_DTYPES
    declared_dtype: torch.dtype = getattr(torch, declared)
    return (declared_dtype,)


def computed_dtype(tensor: torch.Tensor) -> torch.dtype:
    """Return the dtype in which a program computes with values of a tensor.

    >>> computed_dtype(torch.ones(1, dtype=torch.bfloat16))
    torch.float32
    """
    return tensor.dtype if tensor.dtype in PROGRAM_DTYPES else torch.float32
