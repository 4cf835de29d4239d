"""Products of gathered rows with the matrix of their segment, added to rows of the result.

If the matrices of segments are small, a kernel gathers, multiplies and adds groups of products; another one
computes the gradients of the matrices. Else each segment is a product of dense matrices, whose rows are
gathered in chunks that fit the cache. Rows of the result are sums over products in any order, so they are
computed in parallel by a product with a matrix of ones, whose pattern is made once for the tensor of targets.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch

import gossamer as gs
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_torch.checks import require_indices
from gossamer_torch.custom_ops.device_products import product_over_pattern
from gossamer_torch.custom_ops.registration import GradientsByName, torch_operator
from gossamer_torch.custom_ops.segments.grouped_outer_products import (
    OuterProductGroups,
    outer_products_in_groups,
    rows_of_group,
    sums_of_outer_products,
)
from gossamer_torch.custom_ops.segments.grouped_sums import (
    ProductGroups,
    has_small_matrices,
    products_in_groups,
    rows_of_panel,
    sums_of_groups,
)
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.numpy_views import shared_array, tensor_of
from gossamer_torch.patterns import CheckedPattern
from gossamer_torch.program_dtypes import computed_dtype

G = TypeVar("G")

CHUNK = 16384
"""Rows that are gathered before they are multiplied: with 32 features in float32 they have 2 megabytes."""


def _new_sums(x: torch.Tensor, weights: torch.Tensor, rows: int) -> torch.Tensor:
    return x.new_empty((rows, weights.shape[2]))


def _gradients_of_sums(
    gradient: torch.Tensor,
    needed: frozenset[str],
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> GradientsByName:
    gradients = {}
    gradient = gradient.contiguous()
    if "x" in needed:
        back = weights.transpose(1, 2)
        gradients["x"] = segment_sums(gradient, back, targets, sources, offsets, x.shape[0])
    if "weights" in needed:
        gradients["weights"] = segment_products(x, gradient, sources, targets, offsets)
    return gradients


@torch_operator(
    "gather_multiply_scatter",
    new_result=_new_sums,
    gradients=_gradients_of_sums,
    runs_anywhere=True,
)
def segment_sums(
    x: torch.Tensor,
    weights: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    rows: int,
) -> torch.Tensor:
    """Return the sums of `gather_multiply_scatter`. A GPU multiplies a segment at a time, by torch."""
    if x.device.type == "cpu" and has_small_matrices(weights.shape, weights.dtype):
        return _grouped_sums(x, weights, sources, targets, offsets, rows)
    count = len(x)
    if sources is not None:
        count = len(sources)
        require_indices("sources", sources, len(x))
    products = x.new_empty((count, weights.shape[2]))
    for segment, chunk in _chunks(offsets, count):
        # Into its rows of the result: a product of its own would be written, read and written again.
        torch.mm(_rows_at(x, sources, chunk), weights[segment], out=products[chunk])
    return products if targets is None else _sum_by_target(products, targets, rows)


def _new_products(x: torch.Tensor, y: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return x.new_empty((offsets.shape[0] - 1, x.shape[1], y.shape[1]))


def _gradients_of_products(
    gradient: torch.Tensor,
    needed: frozenset[str],
    x: torch.Tensor,
    y: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> GradientsByName:
    gradients = {}
    if "x" in needed:
        back = gradient.transpose(1, 2)
        gradients["x"] = segment_sums(y, back, targets, sources, offsets, x.shape[0])
    if "y" in needed:
        gradients["y"] = segment_sums(x, gradient, sources, targets, offsets, y.shape[0])
    return gradients


@torch_operator(
    "segment_products",
    new_result=_new_products,
    gradients=_gradients_of_products,
    runs_anywhere=True,
)
def segment_products(
    x: torch.Tensor,
    y: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> torch.Tensor:
    """Return for each segment the sum of `x[sources[e]].T @ y[targets[e]]`: the gradient of its weights."""
    shape = (len(offsets) - 1, x.shape[1], y.shape[1])
    count = len(x) if sources is None else len(sources)
    if x.device.type == "cpu" and has_small_matrices(shape, x.dtype):
        return _grouped_outer_products(x, y, sources, targets, offsets)
    result = x.new_zeros(shape)
    for segment, chunk in _chunks(offsets, count):
        left, right = _rows_at(x, sources, chunk), _rows_at(y, targets, chunk)
        result[segment].addmm_(left.t(), right)
    return result


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
    """Return the sums by groups of products, which are made once for the tensors of indices and the rows of a
    panel: these depend on the number of threads."""
    panel = rows_of_panel(rows)

    def make(bounds: Array, target_rows: Array, source_rows: Array) -> ProductGroups:
        segments = bounds.size - 1
        return products_in_groups(
            np.repeat(np.arange(segments), np.diff(bounds)),
            target_rows,
            source_rows,
            count=segments,
            rows=rows,
            columns=len(x),
            panel=panel,
        )

    key = _GROUPS, (rows, len(x), panel)
    groups = _kept_groups(key, make, sources, targets, offsets, columns=len(x), rows=rows)
    return sums_of_groups(x, weights, groups, rows)


def _grouped_outer_products(
    x: torch.Tensor,
    y: torch.Tensor,
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
) -> torch.Tensor:
    """Return the sums of outer products by groups, which are made once for the tensors of indices."""
    group_rows = rows_of_group((x.shape[1] + y.shape[1]) * x.element_size())
    make = partial(outer_products_in_groups, group_rows=group_rows)
    key = _OUTER_GROUPS, (len(y), len(x), group_rows)
    groups = _kept_groups(key, make, sources, targets, offsets, columns=len(x), rows=len(y))
    return sums_of_outer_products(x, y, groups, len(offsets) - 1)


_GROUPS = ResultKey[ProductGroups]("the groups of products by panel and segment")
_OUTER_GROUPS = ResultKey[OuterProductGroups]("the groups of products by segment")


def _kept_groups(
    key: tuple[ResultKey[G], tuple[Hashable, ...]],
    make: Callable[[Array, Array, Array], G],
    sources: torch.Tensor | None,
    targets: torch.Tensor | None,
    offsets: torch.Tensor,
    *,
    columns: int,
    rows: int,
) -> G:
    """Return the groups that `make` returns for the bounds of segments, and for the target and the source of
    each product. They are made again if one of the tensors has changed, and so the tensors are checked there
    only. Sources are below `columns`, targets below `rows`."""
    count = columns if sources is None else len(sources)

    def make_checked() -> G:
        bounds = np.array(_required_bounds(offsets, count))
        for name, index, size in (("sources", sources, columns), ("targets", targets, rows)):
            if index is not None:
                require_indices(name, index, size)
        in_order = np.arange(count)
        return make(
            bounds,
            in_order if targets is None else shared_array(targets),
            in_order if sources is None else shared_array(sources),
        )

    tensors = [index for index in (targets, sources, offsets) if index is not None]
    groups, options = key
    return groups.get(tensors, make_checked, options=(*options, targets is None, sources is None))


def _rows_at(x: torch.Tensor, index: torch.Tensor | None, chunk: slice) -> torch.Tensor:
    return x[chunk] if index is None else x.index_select(0, index[chunk])


def _sum_by_target(products: torch.Tensor, targets: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the sums of products with equal targets."""
    pattern = _scatter_pattern(targets, rows)
    ones = products.new_ones(len(products))
    if products.device.type != "cpu":
        wide = computed_dtype(products)
        tensors = pattern.transposed.tensors
        sums = product_over_pattern(tensors, ones.to(wide), products.to(wide))
        return sums.to(products.dtype)
    matrix = pattern.transposed.matrix(ones)
    return tensor_of(gs.spmm(matrix, shared_array(products)), products.dtype)


_SCATTER_PATTERN = ResultKey[CheckedPattern]("the pattern of a matrix with a row for each target")


def _scatter_pattern(targets: torch.Tensor, rows: int) -> CheckedPattern:
    """Return the pattern of the matrix with a row for each target, made once for the tensor."""

    def make() -> CheckedPattern:
        require_indices("targets", targets, rows)
        crow = torch.arange(len(targets) + 1, dtype=targets.dtype, device=targets.device)
        return CheckedPattern(crow, targets, rows)

    return _SCATTER_PATTERN.get([targets], make, options=(rows,))
