"""What kernels should compute, in float64 and from the stored values alone, and how far off one is.

Nothing here is made with gossamer. Absent elements take no part: infinity times an absent zero is
not NaN.
"""

from __future__ import annotations

import numpy as np

from gossamer_testkit.matrices.csr import Array, Csr


def spmm(matrix: Csr, dense: Array) -> Array:
    """The product of an m x n matrix and an n x k array, m x k in float64.

    >>> from gossamer_testkit.matrices.csr import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(1, 2.0)], []])
    >>> spmm(matrix, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[6., 8.],
           [0., 0.]])
    """
    result = np.zeros((matrix.shape[0], dense.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        values = matrix.data.astype(np.float64)[:, None]
        np.add.at(result, matrix.rows, values * dense.astype(np.float64)[matrix.indices])
    return result


def spmv(matrix: Csr, vector: Array) -> Array:
    """The product of an m x n matrix and a vector of n elements, m elements in float64.

    >>> from gossamer_testkit.matrices.csr import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmv(matrix, np.array([1.0, 3.0]))
    array([5., 0.])
    """
    return spmm(matrix, vector[:, None])[:, 0]


def spmm_magnitude(matrix: Csr, dense: Array) -> Array:
    """|A| |B|: what rounding errors of A B are measured in.

    >>> from gossamer_testkit.matrices.csr import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmm_magnitude(matrix, np.array([[1.0], [-3.0]]))
    array([[7.],
           [0.]])
    """
    positive = Csr(matrix.name, matrix.shape, matrix.indptr, matrix.indices, np.abs(matrix.data))
    return spmm(positive, np.abs(dense))


def spmv_magnitude(matrix: Csr, vector: Array) -> Array:
    """|A| |x|.

    >>> from gossamer_testkit.matrices.csr import from_rows
    >>> matrix = from_rows("a", 2, rows=[[(0, -1.0), (1, 2.0)], []])
    >>> spmv_magnitude(matrix, np.array([1.0, -3.0]))
    array([7., 0.])
    """
    return spmm_magnitude(matrix, vector[:, None])[:, 0]


def max_relative_error(result: Array, reference: Array, *, magnitude: Array) -> float:
    """The largest |result - reference| / magnitude, element by element in float64.

    Elements that are equal, or both NaN, are no error; infinity where one is not finite and the
    other differs, or where the magnitude is zero and they differ; 0.0 where there are no elements.

    >>> max_relative_error(np.array([1.5, np.nan]), np.array([1.0, np.nan]), magnitude=np.ones(2))
    0.5
    """
    if result.shape != reference.shape:
        return float("inf")
    found, expected = result.astype(np.float64), reference.astype(np.float64)
    is_same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = np.abs(found - expected)
        errors = np.where(np.isfinite(difference), difference / magnitude, np.inf)
    errors[is_same] = 0.0
    return float(errors.max(initial=0.0))


def tolerance(length: int, dtype: str) -> float:
    """The largest `max_relative_error` of a sum of `length` products in a dtype, in any order,
    where nothing overflows or underflows (Higham, Accuracy and Stability, section 3.1).

    >>> tolerance(0, "float32")
    0.0
    """
    unit = float(np.finfo(dtype).eps) / 2
    return length * unit / (1 - length * unit) if length * unit < 1 else float("inf")
