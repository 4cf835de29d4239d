"""Oracles for sparse products, computed in float64 from the stored values, and error bounds.

They are independent of gossamer. Absent elements are not multiplied: an infinity in the dense operand
does not make a NaN with an absent zero. A matrix is a `Csr` or a SciPy matrix in CSR; the values of a
`CsrPattern` are not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from gossamer_support.arrays import Array
from gossamer_testkit.matrices.csr_matrix import Csr

WEIGHT_ROUNDINGS = 8
"""Roundings of an attention weight that do not depend on sizes: exp, its argument, two sums, quotient."""


class CsrPattern(Protocol):
    """The positions of the stored elements of a CSR matrix."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""

    @property
    def indptr(self) -> Array:
        """The row pointer."""

    @property
    def indices(self) -> Array:
        """The column of each stored element."""


class Matrix(CsrPattern, Protocol):
    """A CSR matrix with its values."""

    @property
    def data(self) -> Array:
        """The values of the stored elements."""


def _rows_of(matrix: CsrPattern) -> Array:
    """Return the row of each stored element."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def spmm(matrix: Matrix, dense: Array) -> Array:
    """Return the product of an m x n matrix and an n x k array, m x k in float64.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(1, 2.0)], []])
    >>> spmm(matrix, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[6., 8.],
           [0., 0.]])
    """
    result = np.zeros((matrix.shape[0], dense.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        # `add.at` adds each element, also those of the same row, which `result[rows] += ...` would not.
        values = matrix.data.astype(np.float64)[:, None]
        np.add.at(result, _rows_of(matrix), values * dense.astype(np.float64)[matrix.indices])
    return result


def spmv(matrix: Matrix, vector: Array) -> Array:
    """Return the product of an m x n matrix and a vector of n elements, m elements in float64.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmv(matrix, np.array([1.0, 3.0]))
    array([5., 0.])
    """
    return spmm(matrix, vector[:, None])[:, 0]


def spmm_magnitude(matrix: Matrix, dense: Array) -> Array:
    """Return |A| |B|, relative to which the rounding errors of A B are measured.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmm_magnitude(matrix, np.array([[1.0], [-3.0]]))
    array([[7.],
           [0.]])
    """
    shape = matrix.shape[0], matrix.shape[1]
    positive = Csr("magnitudes", shape, matrix.indptr, matrix.indices, np.abs(matrix.data))
    return spmm(positive, np.abs(dense))


def spmv_magnitude(matrix: Matrix, vector: Array) -> Array:
    """Return |A| |x|, relative to which the rounding errors of A x are measured.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmv_magnitude(matrix, np.array([1.0, -3.0]))
    array([7., 0.])
    """
    return spmm_magnitude(matrix, vector[:, None])[:, 0]


def bsr_spmm(indptr: Array, indices: Array, data: Array, *, dense: Array) -> Array:
    """Return the product of blocks, nnzb x h x w, and an nb x w x k array, mb x h x k in float64.

    >>> blocks = np.array([[[1.0, 2.0]], [[3.0, 4.0]]])
    >>> dense = np.array([[[1.0], [10.0]], [[100.0], [1000.0]]])
    >>> bsr_spmm(np.array([0, 2]), np.array([0, 1]), blocks, dense=dense)
    array([[[4321.]]])
    """
    result = np.zeros((len(indptr) - 1, data.shape[1], dense.shape[2]))
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    np.add.at(result, rows, data.astype(np.float64) @ dense.astype(np.float64)[indices])
    return result


def sddmm(matrix: CsrPattern, left: Array, right: Array) -> Array:
    """Return the products of row i of an m x k and row j of an n x k array for each stored element (i, j).

    They are in float64, in the order of the stored elements.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(1, 9.0), (0, 9.0)], []])
    >>> sddmm(matrix, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([2., 1.])
    """
    x, y = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        products: Array = (x[_rows_of(matrix)] * y[matrix.indices]).sum(axis=1)
    return products


def sddmm_magnitude(matrix: CsrPattern, left: Array, right: Array) -> Array:
    """Return `sddmm` of the absolute values, relative to which its rounding errors are measured.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> sddmm_magnitude(from_rows("a", 1, rows=[[(0, 9.0)]]), np.array([[1.0, -2.0]]), np.ones((1, 2)))
    array([3.])
    """
    return sddmm(matrix, np.abs(left), np.abs(right))


def attention(
    matrix: CsrPattern, queries: Array, keys: Array, values: Array, *, scale: float | None = None
) -> Array:
    """Return the softmax of the scaled scores over the stored elements of each row, times the values.

    `queries` is m x d, `keys` n x d, `values` n x k, the result m x k in float64. The default of `scale` is
    1 / sqrt(d).

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, 9.0), (1, 9.0)], []])
    >>> attention(matrix, np.zeros((2, 4)), np.ones((2, 4)), np.array([[1.0], [3.0]]))
    array([[2.],
           [0.]])
    """
    result = np.zeros((matrix.shape[0], values.shape[1]))
    with np.errstate(all="ignore"):
        for row, columns, weights, _ in _weights_of_rows(matrix, queries, keys, scale):
            result[row] = weights @ values[columns].astype(np.float64)
    return result


def attention_bound(
    matrix: CsrPattern, queries: Array, keys: Array, values: Array, *, scale: float | None = None
) -> Array:
    """Return the largest error of each element of `attention`, in units of rounding.

    The absolute error of a score is the rounding error of its sum. It is the relative error of the weight
    exp(score), and bounds that of the sum of the weights.

    >>> from gossamer_testkit.matrices.csr_matrix import from_rows
    >>> matrix = from_rows("a", 1, rows=[[(0, 9.0)], []])
    >>> attention_bound(matrix, np.ones((2, 4)), np.ones((1, 4)), np.array([[-1.0]]))
    array([[78.],
           [ 0.]])
    """
    bound = np.zeros((matrix.shape[0], values.shape[1]))
    with np.errstate(all="ignore"):
        for row, columns, weights, largest in _weights_of_rows(matrix, queries, keys, scale):
            roundings = keys.shape[1] + len(columns) + WEIGHT_ROUNDINGS
            terms = weights @ np.abs(values[columns].astype(np.float64))
            # Twice: each weight has this relative error, and so has the sum by which it is divided.
            bound[row] = 2 * (1 + largest) * roundings * terms
    return bound


def _weights_of_rows(
    matrix: CsrPattern, queries: Array, keys: Array, scale: float | None
) -> Iterator[tuple[int, Array, Array, float]]:
    """Yield for each row with elements its index, columns, weights, and the largest magnitude of its
    scores."""
    q, k = queries.astype(np.float64), keys.astype(np.float64)
    factor = 1 / math.sqrt(max(1, q.shape[1])) if scale is None else scale
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if len(columns):
            scores = k[columns] @ (q[row] * factor)
            # The largest score is subtracted, so that no power overflows; the quotient is the same.
            powers = np.exp(scores - scores.max())
            sizes = np.abs(k[columns]) @ np.abs(q[row] * factor)
            largest = float(sizes[np.isfinite(sizes)].max(initial=0))
            yield row, columns, powers / powers.sum(), largest


def max_relative_error(result: Array, oracle: Array, *, magnitude: Array) -> float:
    """Return the largest |result - oracle| / magnitude of all elements, in float64.

    The error of an element is 0 if both values are equal or NaN, and infinity if they differ and one is
    not finite or the magnitude is zero. The result is 0.0 for empty arrays and infinity for different
    shapes.

    >>> max_relative_error(np.array([1.5, np.nan]), np.array([1.0, np.nan]), magnitude=np.ones(2))
    0.5
    """
    if result.shape != oracle.shape:
        return float("inf")
    actual, expected = result.astype(np.float64), oracle.astype(np.float64)
    is_same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = np.abs(actual - expected)
        errors = np.where(np.isfinite(difference), difference / magnitude, np.inf)
    # Last: the difference of equal infinities is NaN, which has become infinity above.
    errors[is_same] = 0.0
    return float(errors.max(initial=0.0))


def tolerance(length: int, dtype: str) -> float:
    """Return the bound of `max_relative_error` for a sum of `length` products in a dtype, in any order,
    without overflow or underflow (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).

    It bounds the relative error, the `rtol` of NumPy, if no product is negative. Two results that are both
    rounded differ by up to twice as much: the bound for twice the length.

    >>> tolerance(0, "float32")
    0.0
    """
    unit = float(np.finfo(dtype).eps) / 2
    return length * unit / (1 - length * unit) if length * unit < 1 else float("inf")
