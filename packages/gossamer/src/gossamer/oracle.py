"""The independent answer: SciPy in float64, in blocks so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer_formats import Array, SparseTensor, to_scipy

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK_ELEMENTS = 1 << 21
"""How many elements of the result are compared at a time."""


class Comparison(NamedTuple):
    """`max_relative_error` is the largest |y - ref| / (|A| |B|), element by element; `tolerance` what
    rounding may cause in the longest sum; `is_within` whether every element keeps to that of its
    own sum."""

    max_relative_error: float
    tolerance: float
    is_within: bool


def compare(matrix: SparseTensor, dense: Array, result: Array) -> Comparison:
    """Compares result with A @ dense, both of A's dtype; dense is a matrix or a vector.

    A sum of n products is off by at most n * eps * (|A| |B|), and by a denormal number for each
    product that underflows. Where a product or a sum overflows the dtype, anything is right.
    """
    kind = np.finfo(matrix.dtype)
    lengths = np.diff(matrix.arrays["indptr"]).reshape(-1, 1)
    tolerance = float(kind.eps) * (lengths + 2)
    exact = to_scipy(matrix).astype(np.float64)
    magnitude = abs(exact)
    worst, is_within = 0.0, True
    right = dense if dense.ndim == 2 else dense[:, None]
    found = result if result.ndim == 2 else result[:, None]
    for rows, columns in _blocks(*found.shape):
        part = right[:, columns].astype(np.float64)
        expected, bound = _products(exact[rows], magnitude[rows], part)
        error = _difference(found[rows, columns].astype(np.float64), expected)
        worst = max(worst, float(_ratio(error, bound).max(initial=0.0)))
        allowed = tolerance[rows] * bound + lengths[rows] * float(kind.tiny)
        overflows = np.isfinite(bound) & (bound > float(kind.max))
        is_close = np.isfinite(error) & (error <= allowed)
        is_within = is_within and bool(((error == 0.0) | is_close | overflows).all())
    return Comparison(worst, float(tolerance.max(initial=0.0)), is_within)


def _blocks(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    width = max(1, min(columns, 32))
    height = max(1, BLOCK_ELEMENTS // width)
    for first in range(0, columns, width):
        for top in range(0, rows, height):
            yield slice(top, top + height), slice(first, first + width)


def _products(exact: csr_array, magnitude: csr_array, dense: Array) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        return exact @ dense, magnitude @ np.abs(dense)


def _difference(found: Array, expected: Array) -> Array:
    """The absolute error: 0 where both are the same infinity or both NaN, infinite where one is."""
    with np.errstate(all="ignore"):
        error = np.abs(found - expected)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))


def _ratio(error: Array, bound: Array) -> Array:
    with np.errstate(all="ignore"):
        ratio = np.where(bound == 0.0, np.inf, error / bound)
    return np.where(error == 0.0, 0.0, np.where(np.isfinite(error), ratio, np.inf))
