"""Multiplies the elements of a tensor by those of a dense array."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.conversion.by_numpy.stored_elements import stored_elements
from gossamer_formats.storage import Storage, values_handle, with_value_dtype
from gossamer_formats.value_dtypes import NUMPY_DTYPES, decoded_values
from gossamer_ir.errors import ArgumentError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import either


def multiplied_storage(storage: Storage, factor: Any) -> Storage:
    """Return a checked storage with its elements multiplied by a number, or by an array of a shape that
    broadcasts to that of the tensor. The pattern is kept, and slots without an element hold zeros.

    The dtype is that of NumPy's product, in which values of bfloat16 are float32; a Python number has none.
    Raises `ArgumentError` (`tensor.factor`).

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 2]), "data": np.ones(2)}
    >>> one_row = Storage(csr("float64"), {"m": 1, "n": 3, "nnz": 2}, arrays)
    >>> multiplied_storage(one_row, np.array([2.0, 3.0, 4.0])).values
    array([2., 4.])
    """
    dense = _broadcast_factor(storage, factor)
    elements = stored_elements(storage)
    stored = decoded_values(storage.values, storage.description.buffer.dtype)
    values = stored.reshape(-1)[elements.value_indices]
    # A product beyond the range is infinite, as with NumPy's arrays.
    with np.errstate(over="ignore", invalid="ignore"):
        products = values * (factor if dense is None else dense[elements.coordinates])
    dtype = products.dtype.name
    if dtype not in NUMPY_DTYPES:
        raise ArgumentError(
            "tensor.factor",
            f"The product has the dtype {dtype}; expected {either(NUMPY_DTYPES)}.",
            hint="Convert the factor with astype.",
        )
    result = np.zeros(storage.values.size, products.dtype)
    result[elements.value_indices] = products
    name = values_handle(storage.description)
    arrays = {**storage.arrays, name: result.reshape(storage.values.shape)}
    return Storage(with_value_dtype(storage.description, dtype), storage.sizes, arrays)


def _broadcast_factor(storage: Storage, factor: Any) -> Array | None:
    """Return an array in the shape of the tensor, without a copy; None for a number, whose dtype decides less
    than that of an array."""
    dense = np.asarray(factor)
    if dense.ndim == 0:
        return None
    try:
        return np.broadcast_to(dense, storage.shape)
    except ValueError:
        raise ArgumentError(
            "tensor.factor",
            f"The factor has the shape {dense.shape}, which does not broadcast to {storage.shape}.",
            hint="Its dimensions are those of the tensor, or 1.",
        ) from None
