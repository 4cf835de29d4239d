"""Reductions of consecutive rows, with gradients."""

from __future__ import annotations

import torch

from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_one_device,
    require_tensor_shape,
)
from gossamer_torch.custom_ops.row_reductions import ReduceName, reduce_rows
from gossamer_torch.sparse_matrix import SparseMatrix


@typed
def segment_reduce(
    data: torch.Tensor, offsets: torch.Tensor, reduce: ReduceName = "sum"
) -> torch.Tensor:
    """Return the reduction of each segment of rows: row i of the result (m by K) is that of the rows
    `offsets[i]` to `offsets[i + 1]` of `data` (E by K, or E).

    `offsets` (m + 1) is int32 or int64, begins with 0 and ends with E. A segment without rows has 0.
    Reductions, dtypes, gradients and errors are as for `spmm`.

    >>> segment_reduce(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 2, 3]))
    tensor([3., 0., 4.])
    """
    require_dense("data", data)
    if data.dim() != 1:
        require_tensor_shape("data", data, (None, None))
    require_dense("offsets", offsets, dtypes=INDEX_TENSOR_DTYPES)
    require_one_device("offsets", offsets, data.device, like="'data'")
    if offsets.dim() != 1 or not len(offsets):
        require_tensor_shape("offsets", offsets, (1,))
    count = data.shape[0]
    numbers = torch.arange(count, dtype=offsets.dtype, device=offsets.device)
    ones = torch.ones(count, dtype=data.dtype, device=offsets.device)
    segments = SparseMatrix(offsets, numbers, ones, shape=(offsets.shape[0] - 1, count))
    return reduce_rows(segments, data, reduce)
