"""CSR matrices: the storage of their arrays, and the transposed matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer_formats.checks.array_checks import INDEX_DTYPES, require_dtype
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.storage import Storage
from gossamer_formats.value_dtypes import NUMPY_DTYPES, dtype_name
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_support.arrays import Array


def csr_storage(shape: Sequence[int], arrays: Mapping[str, Any]) -> Storage:
    """Return CSR arrays as storage, not copied. Only dtypes are checked, and no column order is declared."""
    for name in ("indptr", "indices"):
        require_dtype(name, arrays[name], INDEX_DTYPES)
    require_dtype("data", arrays["data"], NUMPY_DTYPES)
    description = csr(
        dtype_name(arrays["data"].dtype),
        indptr_dtype=dtype_name(arrays["indptr"].dtype),
        indices_dtype=dtype_name(arrays["indices"].dtype),
        sorted=False,
        unique=False,
    )
    sizes = {"m": shape[0], "n": shape[1], "nnz": arrays["indices"].size}
    return Storage(description, sizes, arrays)


def transposed_storage(storage: Storage) -> Storage:
    """Return the transposed matrix in CSR. The order of duplicates is kept.

    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([2, 0]), "data": np.array([2.0, 3.0])}
    >>> transposed = transposed_storage(Storage(csr("float64"), {"m": 1, "n": 3, "nnz": 2}, arrays))
    >>> transposed.shape, transposed.arrays["indptr"], transposed.arrays["data"]
    ((3, 1), array([0, 1, 1, 2]), array([3., 2.]))
    """
    # A conversion to CSC gives the same arrays, but takes ten times as long until conversions are compiled.
    declared = indices_of(storage.description.axes[-1])
    assert declared is not None
    rows, columns = storage.shape
    indices = storage.arrays["indices"]
    # Stable, so that entries of one column keep the order of their rows, and duplicates theirs.
    order = np.argsort(indices, kind="stable")
    # The rows become column indices, which may need more bits than the columns did.
    dtype = indices.dtype if rows <= np.iinfo(indices.dtype).max else np.dtype(np.int64)
    offsets = np.zeros(columns + 1, storage.arrays["indptr"].dtype)
    np.cumsum(np.bincount(indices, minlength=columns), out=offsets[1:])
    arrays = {
        "indptr": offsets,
        "indices": _rows(storage)[order].astype(dtype),
        "data": storage.arrays["data"][order],
    }
    described = csr(
        storage.description.buffer.dtype,
        indptr_dtype=dtype_name(offsets.dtype),
        indices_dtype=dtype_name(dtype),
        sorted=True,
        unique=declared.unique,
    )
    return Storage(described, {"m": columns, "n": rows, "nnz": indices.size}, arrays)


def _rows(storage: Storage) -> Array:
    """Return the row of each nonzero."""
    return np.repeat(np.arange(storage.shape[0]), np.diff(storage.arrays["indptr"]))
