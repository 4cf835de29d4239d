"""The baseline of `sddmm`, which SciPy does not have: rows that NumPy gathers and multiplies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gossamer.cli.comparison.baselines.baseline import Baseline, Calculation, RoundingBound
from gossamer.cli.comparison.baselines.row_blocks import row_blocks
from gossamer_formats import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

GATHERED_ELEMENTS = 1 << 16
"""The number of elements of an operand that are gathered at a time, so that they stay in the cache."""


def prepare_sddmm(matrix: csr_array, left: Array, right: Array) -> Calculation:
    """Return a function that gathers rows and multiplies them, with precomputed coordinates."""
    # Once, as a user would: the pattern does not change between calls.
    rows = matrix.tocoo().row
    return lambda: gathered_products(rows, matrix.indices, left, right)


def sddmm_bound(matrix: csr_array, left: Array, right: Array) -> RoundingBound:
    """Return the sampled products of the absolute values, and the number of features."""
    return RoundingBound(
        prepare_sddmm(matrix, np.abs(left), np.abs(right))(), np.array(left.shape[1])
    )


def gathered_products(
    rows: Array, columns: Array, left: Array, right: Array, *, elements: int = GATHERED_ELEMENTS
) -> Array:
    """Return the dot products of these rows of `left` with these rows of `right`, in the dtype of `left`.
    About this number of elements of each is gathered at a time.

    >>> gathered_products(np.array([0, 0]), np.array([0, 1]), np.array([[1.0, 2.0]]), np.eye(2))
    array([1., 2.])
    """
    products = np.empty(len(rows), dtype=left.dtype)
    for block in row_blocks(len(rows), left.shape[1], elements=elements):
        products[block] = np.einsum("ek,ek->e", left[rows[block]], right[columns[block]])
    return products


BASELINE = Baseline(
    "rows gathered by NumPy and multiplied by einsum, in blocks",
    prepare_sddmm,
    sddmm_bound,
    operands=("rows", "columns"),
    result="elements",
)
