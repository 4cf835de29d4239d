"""Tensors as dense arrays."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.numpy.elements.stored_elements import stored_elements
from gossamer_formats.storage import Storage
from gossamer_ir.support.arrays import Array


def to_dense(storage: Storage) -> Array:
    """Return the dense array of a checked storage; duplicates are added.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([1, 1]), "data": np.array([2.0, 3.0])}
    >>> to_dense(Storage(csr("float64", unique=False), {"m": 1, "n": 3, "nnz": 2}, arrays))
    array([[0., 5., 0.]])
    """
    elements = stored_elements(storage)
    dense = np.zeros(storage.shape, storage.values.dtype)
    # `dense[coordinates] += values` would keep one of several duplicates.
    np.add.at(dense, elements.coordinates, storage.values[elements.value_indices])
    return dense
