"""Statistics of a matrix, which the scheduling rules use."""

from __future__ import annotations

import numpy as np

from gossamer_formats.storage import Storage, value_count
from gossamer_ir.interchange.records import Stats
from gossamer_ir.support.arrays import Array
from gossamer_ir.support.typed_calls import typed


@typed
def storage_stats(storage: Storage) -> Stats:
    """Return the statistics of a checked CSR matrix.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import borrow_scipy
    >>> storage_stats(borrow_scipy(eye_array(3)))
    Stats(rows=3, columns=3, nnz=3, longest_row=1, empty_rows=0)
    """
    rows, columns = storage.shape
    return row_stats(storage.arrays["indptr"], rows=rows, columns=columns, nnz=value_count(storage))


def row_stats(indptr: Array, *, rows: int, columns: int, nnz: int) -> Stats:
    """Return the statistics of a matrix with this row pointer.

    >>> row_stats(np.array([0, 3, 3]), rows=2, columns=4, nnz=3)
    Stats(rows=2, columns=4, nnz=3, longest_row=3, empty_rows=1)
    """
    if not rows:
        return Stats(0, columns, nnz, 0, 0)
    lengths = indptr[1:] - indptr[:-1]
    empty = rows - int(np.count_nonzero(lengths))
    return Stats(rows, columns, nnz, int(lengths.max()), empty)
