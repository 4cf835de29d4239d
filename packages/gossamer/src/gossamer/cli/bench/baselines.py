"""The programs that users of NumPy and SciPy write for each operator, and the bounds of their rounding
errors.

They are timed beside gossamer. In float64 they are also the expected results. The oracles of the tests, which
do not use SciPy, are in `gossamer_testkit.matrices.oracles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from gossamer_formats import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Program: TypeAlias = Callable[[], Array]

GATHERED_ELEMENTS = 1 << 16
"""The number of elements of an operand that are gathered at a time, so that they stay in the cache."""

WEIGHT_ROUNDINGS = 8
"""Roundings of an attention weight that do not depend on sizes: exp, its argument, two sums, quotient."""


class Bound(NamedTuple):
    """Sums of the absolute values of the terms of each element of a result, and the numbers of terms, which
    broadcast to them."""

    magnitude: Array
    terms: Array


class Baseline(NamedTuple):
    """The program of an operator in SciPy, and the shapes of its operands.

    `prepare` and `bound` take a matrix in CSR and the dense operands. `prepare` returns the function that is
    timed. Each dense operand has a row for each row or column of the matrix, which `operands` tells, and so
    has the result, unless it has one value for each stored element.
    """

    prepare: Callable[..., Program]
    bound: Callable[..., Bound]
    operands: tuple[Literal["rows", "columns"], ...]
    result: Literal["rows", "elements"] = "rows"
    of_vectors: bool = False

    def operand_shapes(self, shape: tuple[int, ...], features: int) -> list[tuple[int, ...]]:
        """Return the shapes of the dense operands for a matrix of this shape.

        >>> baseline_of("sddmm").operand_shapes((2, 3), 64)
        [(2, 64), (3, 64)]
        """
        width = () if self.of_vectors else (features,)
        return [(shape[0] if side == "rows" else shape[1], *width) for side in self.operands]

    def result_shape(self, shape: tuple[int, ...], nnz: int, features: int) -> tuple[int, ...]:
        """Return the shape of the result for a matrix of this shape.

        >>> baseline_of("spmm").result_shape((2, 3), 4, 64), baseline_of("sddmm").result_shape((2, 3), 4, 64)
        ((2, 64), (4,))
        """
        if self.result == "elements":
            return (nnz,)
        return (shape[0],) if self.of_vectors else (shape[0], features)


def baseline_of(op: str) -> Baseline:
    """Return the baseline of an operator."""
    return BASELINES[op]


def prepare_spmm(matrix: csr_array, dense: Array) -> Program:
    """Return a function that computes A @ B; B may be a vector."""
    return lambda: matrix @ dense


def spmm_bound(matrix: csr_array, dense: Array) -> Bound:
    """Return |A| |B| and the lengths of the rows."""
    lengths = np.diff(matrix.indptr).reshape(-1, *(1,) * (dense.ndim - 1))
    return Bound(abs(matrix) @ np.abs(dense), lengths)


def prepare_sddmm(matrix: csr_array, left: Array, right: Array) -> Program:
    """Return a function that gathers rows and multiplies them, with precomputed coordinates."""
    rows = matrix.tocoo().row
    return lambda: gathered_products(rows, matrix.indices, left, right)


def sddmm_bound(matrix: csr_array, left: Array, right: Array) -> Bound:
    """Return the sampled products of the absolute values, and the number of features."""
    return Bound(prepare_sddmm(matrix, np.abs(left), np.abs(right))(), np.array(left.shape[1]))


def prepare_attention(matrix: csr_array, queries: Array, keys: Array, values: Array) -> Program:
    """Return a function that computes sampled products, a softmax of each row, and a sparse product."""
    weights = matrix.astype(queries.dtype)
    scores = prepare_sddmm(matrix, queries, keys)
    scale = queries.dtype.type(_scale(queries))

    def attention() -> Array:
        weights.data = softmax(scores() * scale, weights.indptr)
        product: Array = weights @ values
        return product

    return attention


def attention_bound(matrix: csr_array, queries: Array, keys: Array, values: Array) -> Bound:
    """Return the bound of attention.

    The error of a score is the rounding error of its sum, relative to the sum of the absolute values of its
    terms. It is also the relative error of its weight, and bounds that of the sum of the weights.
    """
    score_sums = sddmm_bound(matrix, queries, keys).magnitude * _scale(queries)
    largest = np.zeros((matrix.shape[0], 1))
    np.maximum.at(largest, matrix.tocoo().row, score_sums[:, None])
    weighted = prepare_attention(matrix, queries, keys, np.abs(values))()
    terms = queries.shape[1] + np.diff(matrix.indptr) + WEIGHT_ROUNDINGS
    return Bound(2.0 * (1.0 + largest) * weighted, terms.reshape(-1, 1))


def gathered_products(
    rows: Array, columns: Array, left: Array, right: Array, *, elements: int = GATHERED_ELEMENTS
) -> Array:
    """Return the dot products of these rows of `left` with these rows of `right`, in the dtype of `left`.
    About this number of elements of each is gathered at a time.

    >>> gathered_products(np.array([0, 0]), np.array([0, 1]), np.array([[1.0, 2.0]]), np.eye(2))
    array([1., 2.])
    """
    products = np.empty(len(rows), dtype=left.dtype)
    for at in blocks(len(rows), left.shape[1], elements=elements):
        products[at] = np.einsum("ek,ek->e", left[rows[at]], right[columns[at]])
    return products


def softmax(scores: Array, indptr: Array) -> Array:
    """Return the softmax of the scores, row by row.

    >>> softmax(np.array([2.0, 2.0, 5.0]), np.array([0, 2, 2, 3]))
    array([0.5, 0.5, 1. ])
    """
    lengths = np.diff(indptr)
    starts, stored = indptr[:-1][lengths > 0], lengths[lengths > 0]
    if not len(stored):
        return scores
    powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), stored))
    shares: Array = powers / np.repeat(np.add.reduceat(powers, starts), stored)
    return shares


def blocks(count: int, width: int, *, elements: int) -> Iterator[slice]:
    """Yield slices of rows with this number of columns, in blocks of about this number of elements.

    >>> list(blocks(5, 3, elements=6))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    height = max(1, elements // max(1, width))
    for first in range(0, count, height):
        yield slice(first, min(first + height, count))


def _scale(queries: Array) -> float:
    return 1.0 / math.sqrt(max(1, queries.shape[1]))


BASELINES = {
    "spmm": Baseline(prepare_spmm, spmm_bound, operands=("columns",)),
    "spmv": Baseline(prepare_spmm, spmm_bound, operands=("columns",), of_vectors=True),
    "sddmm": Baseline(prepare_sddmm, sddmm_bound, operands=("rows", "columns"), result="elements"),
    "attention": Baseline(
        prepare_attention, attention_bound, operands=("rows", "columns", "columns")
    ),
}
"""The baseline of each operator, by its name."""
