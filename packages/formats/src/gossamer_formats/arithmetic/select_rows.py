"""Selects rows of a matrix in CSR."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.storage import Storage
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array


def selected_rows(storage: Storage, rows: Any) -> Storage:
    """Return rows of a checked CSR matrix, in their order: a slice, an array of row numbers, which may be
    negative and repeated, or a mask with a bool for each row.

    Raises `ArgumentError`: `tensor.rows` for anything else, or a row that does not exist.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 1, 1, 3]), "indices": np.array([0, 1, 2]), "data": np.ones(3)}
    >>> matrix = Storage(csr("float64"), {"m": 3, "n": 3, "nnz": 3}, arrays)
    >>> selected_rows(matrix, slice(1, None)).arrays["indptr"]
    array([0, 0, 2])
    """
    count, columns = storage.shape
    indptr, indices, values = (storage.arrays[name] for name in ("indptr", "indices", "data"))
    chosen = _row_numbers(rows, count)
    begins, lengths = indptr[chosen], indptr[chosen + 1] - indptr[chosen]
    ends = np.zeros(chosen.size + 1, indptr.dtype)
    np.cumsum(lengths, out=ends[1:])
    if int(lengths.sum(dtype=np.int64)) > np.iinfo(indptr.dtype).max:
        raise ArgumentError(
            "tensor.rows",
            f"The selected rows have more elements than {indptr.dtype} can count.",
            hint="Select fewer rows, or convert the matrix with index_dtype='int64'.",
        )
    # The index of each element counts from the begin of its row on.
    flat_indices = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], lengths)
    arrays = {"indptr": ends, "indices": indices[flat_indices], "data": values[flat_indices]}
    sizes = {"m": int(chosen.size), "n": columns, "nnz": int(ends[-1])}
    return Storage(storage.description, sizes, arrays)


def _row_numbers(rows: Any, count: int) -> Array:
    if isinstance(rows, slice):
        return np.arange(*rows.indices(count))
    numbers = np.empty((0, 0)) if isinstance(rows, tuple) else np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (count,):
        return np.flatnonzero(numbers)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ArgumentError(
            "tensor.rows",
            f"The index is {rows!r}; expected a slice of rows, their numbers, or a mask.",
            hint="Take A[i:i + 1] for one row, and to_scipy(A) for columns and single elements.",
        )
    numbers = numbers.astype(np.int64)
    outside = numbers[(numbers < -count) | (numbers >= count)]
    if outside.size:
        raise ArgumentError(
            "tensor.rows", f"There is no row {int(outside[0])}; the matrix has {count} rows."
        )
    return np.where(numbers < 0, numbers + count, numbers)
