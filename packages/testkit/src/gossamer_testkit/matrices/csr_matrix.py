"""A CSR matrix as plain arrays, and functions that make one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


class Csr(msgspec.Struct, frozen=True, eq=False):
    """A named CSR matrix: row i has the columns `indices[indptr[i]:indptr[i + 1]]`, with values in `data`.

    >>> matrix = from_rows("small", 4, rows=[[(1, 2.0)], [], [(3, 5.0), (0, 1.0)]])
    >>> matrix.nnz, matrix.longest_row, matrix.is_canonical
    (3, 2, False)
    >>> matrix.row_lengths, matrix.rows
    (array([1, 0, 2], dtype=int32), array([0, 2, 2]))
    """

    name: str
    shape: tuple[int, int]
    indptr: Array
    indices: Array
    data: Array

    @property
    def nnz(self) -> int:
        """The number of stored values."""
        return int(self.indptr[-1])

    @property
    def row_lengths(self) -> Array:
        """The number of stored values in each row."""
        return np.diff(self.indptr)

    @property
    def longest_row(self) -> int:
        """The number of stored values in the longest row, 0 if there are no rows."""
        return int(self.row_lengths.max(initial=0))

    @property
    def rows(self) -> Array:
        """The row of each stored value."""
        return np.repeat(np.arange(self.shape[0]), self.row_lengths)

    @property
    def is_canonical(self) -> bool:
        """True if the columns of each row strictly increase: sorted and unique."""
        same_row = np.diff(self.rows) == 0
        return bool((np.diff(self.indices)[same_row] > 0).all())


@typed
def from_rows(
    name: str,
    columns: int,
    *,
    rows: Sequence[Iterable[tuple[int, float]]],
    dtype: str = "float32",
    index_dtype: str = "int32",
) -> Csr:
    """Return a matrix from the (column, value) pairs of each row, in the order given.

    >>> from_rows("small", 4, rows=[[(1, 2.0)], [], [(0, 1.0), (3, 5.0)]]).indptr
    array([0, 1, 1, 3], dtype=int32)
    """
    stored = [list(row) for row in rows]
    indptr = np.cumsum([0, *map(len, stored)])
    pairs = [pair for row in stored for pair in row]
    return Csr(
        name,
        (len(stored), columns),
        indptr.astype(index_dtype),
        np.array([column for column, _ in pairs], dtype=index_dtype),
        np.array([value for _, value in pairs], dtype=dtype),
    )


@typed
def from_mask(name: str, mask: Array, *, dtype: str = "float32", index_dtype: str = "int32") -> Csr:
    """Return a matrix with a small integer, not zero, wherever `mask` is true.

    >>> from_mask("corner", np.eye(2, 3, dtype=bool)).data
    array([-3., -2.], dtype=float32)
    """
    rows = [
        [(int(column), _value(row, int(column))) for column in np.flatnonzero(mask[row])]
        for row in range(mask.shape[0])
    ]
    return from_rows(name, mask.shape[1], rows=rows, dtype=dtype, index_dtype=index_dtype)


def _value(row: int, column: int) -> float:
    # Different in adjacent rows and columns, so that a kernel that confuses them is wrong.
    return float((3 * row + 5 * column) % 7 - 3 or 4)
