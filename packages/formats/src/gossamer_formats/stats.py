"""Statistics of a matrix, which the scheduling rules use."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from gossamer_formats.storage import Storage, value_count
from gossamer_ir.interchange.records import Stats
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed

SAMPLED_ROWS = 256
"""Number of rows that are compared with the rows before: the share of equal ones is estimated to 3 %."""

GOLDEN_RATIO = (5**0.5 - 1) / 2


@typed
def storage_stats(storage: Storage) -> Stats:
    """Return the statistics of a checked CSR matrix.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import borrow_scipy
    >>> storage_stats(borrow_scipy(eye_array(3)))
    Stats(rows=3, columns=3, nnz=3, longest_row=1, empty_rows=0, equal_rows=0)
    """
    rows, columns = storage.shape
    arrays = storage.arrays
    stats = row_stats(arrays["indptr"], rows=rows, columns=columns, nnz=value_count(storage))
    return replace(stats, equal_rows=equal_rows(arrays["indptr"], arrays["indices"]))


def row_stats(indptr: Array, *, rows: int, columns: int, nnz: int) -> Stats:
    """Return the statistics of a matrix with this row pointer.

    >>> row_stats(np.array([0, 3, 3]), rows=2, columns=4, nnz=3)
    Stats(rows=2, columns=4, nnz=3, longest_row=3, empty_rows=1, equal_rows=0)
    """
    if not rows:
        return Stats(0, columns, nnz, 0, 0)
    lengths = indptr[1:] - indptr[:-1]
    empty = rows - int(np.count_nonzero(lengths))
    return Stats(rows, columns, nnz, int(lengths.max()), empty)


def equal_rows(indptr: Array, indices: Array) -> int:
    """Estimate the number of rows of a matrix with the same columns as the row before. Empty rows do not
    count.

    A sample of rows is compared with the rows before, in their lengths and in the first, the middle and the
    last column: three elements tell rows of finite elements from others.

    >>> equal_rows(np.array([0, 2, 4, 6, 6, 6]), np.array([0, 3, 0, 3, 1, 3]))
    1
    """
    pairs = len(indptr) - 2
    if pairs < 1:
        return 0
    before = np.arange(pairs)
    if pairs > SAMPLED_ROWS:
        # Multiples of the golden ratio are spread evenly, also among the rows of groups of any size.
        before = (np.arange(SAMPLED_ROWS) * GOLDEN_RATIO % 1.0 * pairs).astype(np.int64)
    first, second, end = (indptr[before + step] for step in range(3))
    length = end - second
    is_candidate = (length == second - first) & (length > 0)
    first, second, length = first[is_candidate], second[is_candidate], length[is_candidate]
    is_equal = np.ones(len(length), bool)
    for place in (0, length // 2, length - 1):
        is_equal &= indices[first + place] == indices[second + place]
    return int(np.count_nonzero(is_equal)) * pairs // len(before)
