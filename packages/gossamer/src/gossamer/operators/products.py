"""The operator `@` of tensors, by `spmm` and `spmv`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operators.spmm import spmm
from gossamer.operators.spmv import spmv
from gossamer_formats import Decomposition, SparseTensor


def matmul(tensor: SparseTensor | Decomposition, dense: Any) -> Any:
    """Return the product of a tensor with a dense matrix or vector; NotImplemented for anything else."""
    if not isinstance(dense, np.ndarray) or dense.ndim not in (1, 2):
        return NotImplemented
    return spmm(tensor, dense)


def rmatmul(tensor: SparseTensor, dense: Any) -> Any:
    """Return the product of a dense matrix or vector with a tensor; NotImplemented for anything else."""
    if not isinstance(dense, np.ndarray) or dense.ndim not in (1, 2):
        return NotImplemented
    if dense.ndim == 1:
        return spmv(tensor.T, dense)
    # (A^T B^T)^T: the transposed tensor is kept, the dense operand is copied at each call.
    return spmm(tensor.T, np.ascontiguousarray(dense.T)).T
