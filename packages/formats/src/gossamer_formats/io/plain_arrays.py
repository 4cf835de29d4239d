"""Makes tensors from NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from gossamer_formats.checks.column_order import row_order
from gossamer_formats.checks.storage_checks import (
    INDEX_DTYPES,
    VALUE_DTYPES,
    check_storage,
    require_dtype,
)
from gossamer_formats.descriptions import csr
from gossamer_formats.ownership import owned
from gossamer_formats.storage import Array, Storage, native_name
from gossamer_formats.tensor import SparseTensor
from gossamer_ir.core.typed_calls import typed
from gossamer_ir.errors import FormatError

_STORED = ("csr",)
"""The formats that tensors may have. Other formats have descriptions only."""


@typed
def from_arrays(format: str, shape: Sequence[int], **arrays: Array) -> SparseTensor:
    """A tensor made from arrays, which are passed by their names in the format's description.

    Arrays are one-dimensional and are copied: indices of int32 or int64, values of float32 or float64.
    The tensor's description records the dtypes, and whether columns are sorted and unique.
    Raises a `FormatError` that names the first invalid element.

    >>> indptr, indices = np.array([0, 2, 2]), np.array([0, 2])
    >>> from_arrays("csr", (2, 3), indptr=indptr, indices=indices, data=np.ones(2))
    SparseTensor(csr, 2 by 3, 2 nonzeros, float64, 56 bytes)
    """
    if format not in _STORED:
        known = ", ".join(_STORED)
        raise FormatError(
            "format.unknown",
            f"Tensors cannot have the format '{format}'; expected one of: {known}.",
        )
    _require_names(arrays)
    copies = {name: owned(np.asarray(array)) for name, array in arrays.items()}
    return tensor_of(csr_storage(require_shape(shape), copies))


def csr_storage(shape: tuple[int, int], arrays: Mapping[str, Any]) -> Storage:
    """CSR arrays as storage, not copied. Only dtypes are checked, and no column order is declared."""
    for name in ("indptr", "indices"):
        require_dtype(name, arrays[name], INDEX_DTYPES)
    require_dtype("data", arrays["data"], VALUE_DTYPES)
    description = csr(
        native_name(arrays["data"].dtype),
        indptr_dtype=native_name(arrays["indptr"].dtype),
        indices_dtype=native_name(arrays["indices"].dtype),
        sorted=False,
        unique=False,
    )
    sizes = {"m": shape[0], "n": shape[1], "nnz": arrays["indices"].size}
    return Storage(description, sizes, arrays)


def tensor_of(storage: Storage) -> SparseTensor:
    """A tensor with checked copies of CSR arrays; its description records their column order."""
    copies = {name: owned(array) for name, array in storage.arrays.items()}
    storage = storage._replace(arrays=copies)
    check_storage(storage)
    found = row_order(storage.arrays["indptr"], storage.arrays["indices"])
    exact = csr(
        storage.format.buffer.dtype,
        indptr_dtype=native_name(storage.arrays["indptr"].dtype),
        indices_dtype=native_name(storage.arrays["indices"].dtype),
        sorted=found.is_sorted,
        unique=found.is_unique,
    )
    return SparseTensor.of_checked(storage._replace(format=exact))


def require_shape(shape: Sequence[int]) -> tuple[int, int]:
    """The shape as two integers; raises a `FormatError` unless both are from 0 to 2**63 - 1."""
    try:
        sizes = tuple(index(size) for size in shape)
    except TypeError:
        sizes = ()
    if len(sizes) != 2 or not 0 <= min(sizes) <= max(sizes) < 2**63:
        raise FormatError(
            "format.shape", f"The shape is {shape}; expected two sizes from 0 to 2**63 - 1."
        )
    return sizes[0], sizes[1]


def _require_names(arrays: Mapping[str, Array]) -> None:
    expected = {param.name for param in csr().params if param.dtype == "handle"}
    if set(arrays) != expected:
        found = ", ".join(sorted(arrays)) or "none"
        raise FormatError(
            "format.arrays", f"The arrays are {found}; expected {', '.join(sorted(expected))}."
        )
