"""Products of gathered rows with the matrix of their segment, added to rows of the result, with gradients.

Relational convolution, sparse convolution and mixtures of experts have this form.
"""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_one_device,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.custom_ops.index_tensors import checked_indices
from gossamer_torch.custom_ops.segments.segment_sums import segment_sums


@typed
def gather_multiply_scatter(
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    rows: int,
) -> torch.Tensor:
    """Return the result (`rows` by D) whose row `targets[e]` is the sum over these e of
    `x[sources[e]] @ weights[s]`, where s is the segment with `offsets[s] <= e < offsets[s + 1]`.

    `x` is n by C, `weights` S by C by D; `sources` and `targets` (E) and `offsets` (S + 1) are integers.
    Without `sources`, product e is of row e of `x`; without `targets`, it is row e of the result. Gradients
    flow to `x` and `weights`, any number of times.

    Raises `ArgumentError` (`operand.kind`, `operand.shape`, `operand.dtype`, `operand.range`).

    >>> x, weights = torch.tensor([[1.0], [10.0]]), torch.tensor([[[2.0]], [[3.0]]])
    >>> sources, targets = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 2])
    >>> gather_multiply_scatter(x, weights, sources, targets, torch.tensor([0, 1, 3]), 3)
    tensor([[32.],
            [ 0.],
            [30.]])
    """
    for name, tensor in (("x", x), ("weights", weights)):
        require_dense(name, tensor)
    require_one_device("weights", weights, x.device, like="'x'")
    require_one_dtype("weights", weights, x.dtype, like="'x'")
    for name, index in (("sources", sources), ("targets", targets), ("offsets", offsets)):
        if index is not None:
            require_dense(name, index, dtypes=INDEX_TENSOR_DTYPES)
            require_one_device(name, index, x.device, like="'x'")
    require_tensor_shape("x", x, (None, None))
    require_tensor_shape("offsets", offsets, (None,))
    require_tensor_shape("weights", weights, (offsets.shape[0] - 1, x.shape[1], None))
    count = x.shape[0] if sources is None else sources.shape[0]
    for name, index in (("sources", sources), ("targets", targets)):
        if index is not None:
            require_tensor_shape(name, index, (count,))
    if targets is None and rows != count:
        raise ArgumentError(
            "operand.shape",
            f"'rows' is {rows}; expected {count}, the number of products, as there are no targets.",
        )
    sources, targets = (
        None if index is None else checked_indices(index) for index in (sources, targets)
    )
    return segment_sums(x, weights, sources, targets, checked_indices(offsets), rows)
