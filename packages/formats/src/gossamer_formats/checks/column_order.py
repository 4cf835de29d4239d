"""Determines whether the columns of each row are sorted and unique."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.storage import Array
from gossamer_ir.support.index_arrays import Segments, first_unsorted


class RowOrder(NamedTuple):
    """`is_sorted`: columns never decrease within a row; `is_unique`: no row has a column twice."""

    is_sorted: bool
    is_unique: bool


def row_order(indptr: Array, indices: Array) -> RowOrder:
    """Return the order of the columns in CSR arrays, which must have been checked.

    >>> row_order(np.array([0, 3]), np.array([0, 2, 2]))
    RowOrder(is_sorted=True, is_unique=False)
    """
    is_sorted = first_unsorted(Segments(indices, indptr), unique=False) is None
    in_order = indices if is_sorted else _sorted_rows(indptr, indices)
    is_unique = first_unsorted(Segments(in_order, indptr), unique=True) is None
    return RowOrder(is_sorted, is_unique)


def _sorted_rows(indptr: Array, indices: Array) -> Array:
    from scipy.sparse import csr_array

    shape = (indptr.size - 1, int(indices.max()) + 1)
    marks = np.zeros(indices.size, dtype=np.int8)
    rows: Any = csr_array((marks, indices.copy(), indptr.copy()), shape=shape)
    rows.sort_indices()
    return rows.indices  # type: ignore[no-any-return]  # SciPy's stubs leave it open
