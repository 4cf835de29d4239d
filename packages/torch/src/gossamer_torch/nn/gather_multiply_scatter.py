"""Products of gathered rows with the matrix of their segment, added to rows of the result.

Relational convolution, sparse convolution and mixtures of experts have this form. If the matrices of segments
are small, a kernel gathers, multiplies and adds groups of products. Else each segment is a product of dense
matrices, whose rows are gathered in chunks that fit the cache. Rows of the result are sums over products in
any order, so they are computed in parallel by a product with a matrix of ones, whose pattern is made once for
the tensor of targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import gossamer as gs
from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_indices,
    require_one_dtype,
    require_tensor_shape,
)
from gossamer_torch.nn.kept_results import kept_with
from gossamer_torch.numpy_views import shared_array, tensor_of
from gossamer_torch.operators.grouped_products import (
    Groups,
    has_small_matrices,
    products_in_groups,
    sums_of_groups,
)
from gossamer_torch.patterns import CheckedPattern

CHUNK = 16384
"""Rows that are gathered before they are multiplied: with 32 features in float32 they have 2 megabytes."""


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
    require_one_dtype("weights", weights, x.dtype, like="'x'")
    for name, index in (("sources", sources), ("targets", targets), ("offsets", offsets)):
        if index is not None:
            require_dense(name, index, dtypes=INDEX_TENSOR_DTYPES)
    require_tensor_shape("x", x, (None, None))
    require_tensor_shape("offsets", offsets, (None,))
    require_tensor_shape("weights", weights, (offsets.shape[0] - 1, x.shape[1], None))
    count = x.shape[0] if sources is None else sources.shape[0]
    for name, index in (("sources", sources), ("targets", targets)):
        if index is not None:
            require_tensor_shape(name, index, (count,))
    if targets is None:
        require_tensor_shape("the result", x.new_empty((rows, 0)), (count, None))
    result: torch.Tensor = segment_sums(x, weights, sources, targets, offsets, rows)
    return result


@torch.library.custom_op("gossamer::gather_multiply_scatter", mutates_args=(), device_types="cpu")
def segment_sums(
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    rows: int,
) -> torch.Tensor:
    """Return the sums of `gather_multiply_scatter`."""
    if has_small_matrices(weights):
        return _grouped_sums(x, weights, sources, targets, offsets, rows)
    count = len(x)
    if sources is not None:
        count = len(sources)
        require_indices("sources", sources, len(x))
    products = x.new_empty((count, weights.shape[2]))
    for segment, chunk in _chunks(offsets, count):
        torch.mm(_rows_at(x, sources, chunk), weights[segment], out=products[chunk])
    return products if targets is None else _scattered(products, targets, rows)


@segment_sums.register_fake
def _(
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    rows: int,
) -> torch.Tensor:
    return x.new_empty((rows, weights.shape[2]))


@torch.library.custom_op("gossamer::segment_products", mutates_args=(), device_types="cpu")
def segment_products(
    x: torch.Tensor,
    y: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> torch.Tensor:
    """Return for each segment the sum of `x[sources[e]].T @ y[targets[e]]`: the gradient of its weights."""
    result = x.new_zeros((len(offsets) - 1, x.shape[1], y.shape[1]))
    count = len(x) if sources is None else len(sources)
    for segment, chunk in _chunks(offsets, count):
        left, right = _rows_at(x, sources, chunk), _rows_at(y, targets, chunk)
        result[segment].addmm_(left.t(), right)
    return result


@segment_products.register_fake
def _(
    x: torch.Tensor,
    y: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> torch.Tensor:
    return x.new_empty((offsets.shape[0] - 1, x.shape[1], y.shape[1]))


def _save_sums(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, _ = inputs
    ctx.save_for_backward(*tensors)


def _gradients_of_sums(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    x, weights, sources, targets, offsets = ctx.saved_tensors
    of_x = of_weights = None
    gradient = gradient.contiguous()
    if ctx.needs_input_grad[0]:
        back = weights.transpose(1, 2)
        of_x = segment_sums(gradient, back, targets, sources, offsets, x.shape[0])
    if ctx.needs_input_grad[1]:
        of_weights = segment_products(x, gradient, sources, targets, offsets)
    return of_x, of_weights, None, None, None, None


segment_sums.register_autograd(_gradients_of_sums, setup_context=_save_sums)


def _save_products(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradients_of_products(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    x, y, sources, targets, offsets = ctx.saved_tensors
    of_x = of_y = None
    if ctx.needs_input_grad[0]:
        back = gradient.transpose(1, 2)
        of_x = segment_sums(y, back, targets, sources, offsets, x.shape[0])
    if ctx.needs_input_grad[1]:
        of_y = segment_sums(x, gradient, sources, targets, offsets, y.shape[0])
    return of_x, of_y, None, None, None


segment_products.register_autograd(_gradients_of_products, setup_context=_save_products)


def _chunks(offsets: torch.Tensor, count: int) -> Iterator[tuple[int, slice]]:
    """Yield the segments with the chunks of their products. Raises `ArgumentError` (`operand.range`) if they
    do not cover all."""
    for segment, (start, end) in enumerate(pairwise(_required_bounds(offsets, count))):
        for low in range(start, end, CHUNK):
            yield segment, slice(low, min(low + CHUNK, end))


def _required_bounds(offsets: torch.Tensor, count: int) -> list[int]:
    """Return the bounds of segments. Raises `ArgumentError` (`operand.range`) if they do not cover all
    products."""
    bounds: list[int] = offsets.tolist()
    if bounds[0] != 0 or bounds[-1] != count or bounds != sorted(bounds):
        raise ArgumentError(
            "operand.range",
            f"'offsets' is from {bounds[0]} to {bounds[-1]}; expected values that rise from 0 to {count}, "
            "the number of products.",
        )
    return bounds


def _grouped_sums(
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    rows: int,
) -> torch.Tensor:
    """Return the sums by groups of products, which are made once for the tensors of indices."""
    count = len(x) if sources is None else len(sources)

    def make() -> Groups:
        bounds = _required_bounds(offsets, count)
        for name, index, size in (("sources", sources, len(x)), ("targets", targets, rows)):
            if index is not None:
                require_indices(name, index, size)
        in_order = np.arange(count)
        return products_in_groups(
            np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)),
            in_order if targets is None else shared_array(targets),
            in_order if sources is None else shared_array(sources),
            count=len(bounds) - 1,
            rows=rows,
            columns=len(x),
        )

    # The forward and the backward pass have groups of their own, which are kept with other tensors.
    tensors = [index for index in (targets, sources, offsets) if index is not None]
    what = f"groups {targets is None} {rows} {len(x)}"
    groups = kept_with(tensors[0], what, make, beside=tensors[1:])
    return sums_of_groups(x, weights, groups, rows)


def _rows_at(x: torch.Tensor, index: torch.Tensor | None, chunk: slice) -> torch.Tensor:
    return x[chunk] if index is None else x.index_select(0, index[chunk])


def _scattered(products: torch.Tensor, targets: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the sums of products with equal targets."""
    pattern = _scatter_pattern(targets, rows)
    ones = products.new_ones(len(products))
    matrix = pattern.matrix(ones, transposed=True)
    return tensor_of(gs.spmm(matrix, shared_array(products)), products.dtype)


def _scatter_pattern(targets: torch.Tensor, rows: int) -> CheckedPattern:
    """Return the pattern of the matrix with a row for each target, made once for the tensor."""

    def make() -> CheckedPattern:
        require_indices("targets", targets, rows)
        crow = torch.arange(len(targets) + 1, dtype=targets.dtype)
        return CheckedPattern(crow, targets, rows)

    return kept_with(targets, f"scatter to {rows}", make)
