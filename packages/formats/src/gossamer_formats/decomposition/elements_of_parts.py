"""The elements of all parts as one tensor, from which it is converted to any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer_formats.conversion.destination.dtypes import native_index_dtype, with_index_dtype
from gossamer_formats.decomposition.part import Part
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.storage import Storage
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_support.arrays import Array


def elements_of_parts(
    parts: Sequence[Part], shape: tuple[int, int], dtype: np.dtype[Any]
) -> SparseTensor:
    """Return the matrix whose parts these are, as the coordinates and values of its elements, in the order of
    the parts.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import from_scipy
    >>> tensor = from_scipy(eye_array(2))
    >>> elements_of_parts([Part("all", tensor, np.arange(2))], (2, 2), tensor.dtype).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows, columns = shape
    index_dtype = native_index_dtype(max(rows, columns, sum(part.tensor.nnz for part in parts)))
    # In any order: sorting each part would not make the whole sorted.
    described = with_index_dtype(coo(dtype.name, sorted=False), index_dtype)
    elements = [part.tensor.asformat(described, index_dtype=index_dtype).arrays for part in parts]

    def join(name: str, dtype: Any) -> Array:
        return adopt_array(np.concatenate([np.zeros(0, dtype), *(one[name] for one in elements)]))

    arrays = {"data": join("data", dtype)}
    arrays |= {name: join(name, index_dtype) for name in ("indices_0", "indices_1")}
    sizes = {"n0": rows, "n1": columns, "nnz": arrays["data"].size}
    return SparseTensor.from_checked(Storage(described, sizes, arrays))
