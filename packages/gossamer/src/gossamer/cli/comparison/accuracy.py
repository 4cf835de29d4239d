"""Compares results with those of the baselines in float64, within the error bounds of rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gossamer.cli.comparison.baselines import baseline_of
from gossamer.cli.comparison.baselines.baseline import Baseline, RoundingBound
from gossamer.cli.comparison.baselines.row_blocks import row_blocks
from gossamer_formats import Array, SparseTensor, to_scipy

CHECKED_PRODUCTS = 1 << 21
"""The number of products that are checked at a time, which limits the memory for operands in float64."""


class Comparison(msgspec.Struct, frozen=True):
    """`max_relative_error` is the largest error relative to the sum of the absolute values of an element's
    terms; `tolerance` is the error bound of the longest sum; `is_within` is True if the error of each element
    is within the bound of its own sum."""

    max_relative_error: float
    tolerance: float
    is_within: bool


class ExpectedPart(NamedTuple):
    """The exact values of the `elements` of a result, in float64, with the bound of their errors."""

    elements: slice
    exact: Array
    bound: RoundingBound


def compare_with_baseline(
    op: str, matrix: SparseTensor, dense: Sequence[Array], result: Array
) -> Comparison:
    """Compare the result of an operator on a matrix and dense operands with that of its baseline.

    The error of a sum of n products is at most n * eps times the sum of their absolute values, plus a
    denormal number for each product that underflows. If a product or a sum overflows the dtype, any result
    is accepted.

    >>> from gossamer_formats import from_scipy
    >>> from scipy.sparse import eye_array
    >>> matrix, dense = from_scipy(eye_array(3, dtype="float32")), np.ones((3, 2), np.float32)
    >>> compare_with_baseline("spmm", matrix, [dense], dense).is_within
    True
    >>> compare_with_baseline("spmm", matrix, [dense], dense + 1).max_relative_error
    1.0
    """
    dtype = np.finfo(result.dtype)
    worst, longest, is_within = 0.0, 0, True
    for elements, exact, bound in _expected_parts(baseline_of(op), matrix, dense):
        error = _difference(result[elements].astype(np.float64), exact)
        worst = max(worst, float(_ratio(error, bound.magnitude).max(initial=0.0)))
        longest = max(longest, int(bound.terms.max(initial=0)))
        is_within = is_within and _is_within(error, bound, dtype=dtype)
    return Comparison(worst, float(dtype.eps) * (longest + 2), is_within)


def _expected_parts(
    baseline: Baseline, matrix: SparseTensor, dense: Sequence[Array]
) -> Iterator[ExpectedPart]:
    """Yield the expected result in blocks of rows. Only the rows of operands that a block needs are converted
    to float64."""
    from scipy.sparse import csr_array

    csr = to_scipy(matrix)
    mean_row = max(1, csr.nnz // max(1, csr.shape[0]))
    width = math.prod(dense[0].shape[1:]) * mean_row
    for rows in row_blocks(csr.shape[0], width, elements=CHECKED_PRODUCTS):
        block = csr[rows]
        columns, positions = np.unique(block.indices, return_inverse=True)
        # Columns are numbered anew, so that an operand has only the rows that the block reads.
        arrays = block.data.astype(np.float64), positions, block.indptr
        part = csr_array(arrays, shape=(block.shape[0], columns.size))
        chosen: dict[str, Any] = {"rows": rows, "columns": columns}
        operands = [
            operand[chosen[side]].astype(np.float64)
            for side, operand in zip(baseline.operands, dense, strict=True)
        ]
        stored = slice(csr.indptr[rows.start], csr.indptr[rows.stop])
        elements = rows if baseline.result == "rows" else stored
        with np.errstate(all="ignore"):
            yield ExpectedPart(
                elements, baseline.prepare(part, *operands)(), baseline.bound(part, *operands)
            )


def _is_within(error: Array, bound: RoundingBound, *, dtype: Any) -> bool:
    magnitude, terms = bound
    with np.errstate(all="ignore"):
        allowed = float(dtype.eps) * (terms + 2) * magnitude + terms * float(dtype.tiny)
    # The exact result is finite in float64, but the dtype of the result cannot hold it.
    overflows = np.isfinite(magnitude) & (magnitude > float(dtype.max))
    is_close = np.isfinite(error) & (error <= allowed)
    return bool(((error == 0.0) | is_close | overflows).all())


def _difference(result: Array, exact: Array) -> Array:
    """Return the absolute error: 0 if both are NaN or the same infinity, infinity if only one is."""
    with np.errstate(all="ignore"):
        error = np.abs(result - exact)
    same = (result == exact) | (np.isnan(result) & np.isnan(exact))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def _ratio(error: Array, magnitude: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio = np.where(magnitude == 0.0, np.inf, error / magnitude)
    return np.where(error == 0.0, 0.0, np.where(np.isfinite(ratio), ratio, np.inf))
