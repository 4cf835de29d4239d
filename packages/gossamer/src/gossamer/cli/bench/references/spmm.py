"""SciPy's product of a sparse and a dense matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.cli.bench.references.reference import Reference, ReferencePart, Shapes, blocks
from gossamer_formats import Array, SparseTensor, to_scipy

if TYPE_CHECKING:
    from scipy.sparse import csr_array

COLUMNS = 32
"""The number of columns of the result that the oracle computes at a time."""


def shapes(matrix: SparseTensor, features: int) -> Shapes:
    """B and C."""
    rows, columns = matrix.shape
    return Shapes(((columns, features),), (rows, features))


def parts(matrix: SparseTensor, dense: Array) -> Iterator[ReferencePart]:
    """Return the product in float64."""
    exact: csr_array = to_scipy(matrix).astype(np.float64)
    magnitude = abs(exact)
    terms = np.diff(matrix.arrays["indptr"]).reshape(-1, 1)
    for columns in blocks(dense.shape[1], 1, elements=COLUMNS):
        right = dense[:, columns].astype(np.float64)
        for rows in blocks(matrix.shape[0], right.shape[1]):
            with np.errstate(all="ignore"):
                values, sums = exact[rows] @ right, magnitude[rows] @ np.abs(right)
            yield ReferencePart((rows, columns), values, sums, terms[rows])


def scipy(matrix: SparseTensor, dense: Array) -> Callable[[], Any]:
    """Return a function that computes A @ B; B may be a vector."""
    left: csr_array = to_scipy(matrix)
    return lambda: left @ dense


REFERENCE = Reference(shapes, parts, scipy)
