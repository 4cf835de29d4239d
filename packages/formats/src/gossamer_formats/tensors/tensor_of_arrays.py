"""Makes tensors of arrays in any order of coordinates, copied or borrowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer_formats.checks.array_checks import INDEX_DTYPES, require_dtype
from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.checks.owned_storage import checked_copy
from gossamer_formats.checks.shapes import required_shape
from gossamer_formats.conversion.destination.conversion_destination import describe
from gossamer_formats.conversion.destination.dtypes import index_dtypes, with_dtypes_of
from gossamer_formats.conversion.destination.sizes_of_arrays import sizes_of_arrays
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.storage import Storage, values_handle
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.value_dtypes import NUMPY_DTYPES, value_array_dtype
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array


def tensor_of_arrays(
    format: str | FormatDescription,
    shape: Sequence[int],
    arrays: Mapping[str, Array],
    *,
    sizes: Mapping[str, int] | None = None,
    copy: bool = True,
) -> SparseTensor:
    """Return a tensor of arrays, whose description records the order that the coordinates have.

    A tensor that borrows the arrays (`copy=False`) declares no order, because the caller can change it.

    >>> import numpy as np
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([2, 0]), "data": np.ones(2)}
    >>> tensor_of_arrays("csc", (3, 1), arrays).description.axes[1].sorted
    False
    """
    lengths = required_shape(shape)
    declared = describe(format, ndim=len(lengths))
    required_shape(shape, ndim=len(shape_of(declared)))
    name = values_handle(declared)
    value_dtype = value_array_dtype(declared.buffer.dtype).name
    if value_dtype not in NUMPY_DTYPES:
        require_dtype(name, arrays[name], (value_dtype,))
    else:
        require_dtype(name, arrays[name], NUMPY_DTYPES)
    for handle, dtype in index_dtypes(declared).items():
        require_dtype(handle, arrays[handle], INDEX_DTYPES if dtype in INDEX_DTYPES else (dtype,))
    described = with_dtypes_of(without_order(declared), arrays)
    all_sizes = sizes_of_arrays(described, lengths, arrays, sizes or {})
    storage = Storage(described, all_sizes, arrays)
    # Formats with a map compute their shape from sizes, which may contradict the given one.
    if storage.shape != lengths:
        raise FormatError(
            "format.shape", f"The shape is {storage.shape} with these sizes; expected {lengths}."
        )
    if not copy:
        return SparseTensor.from_borrowed(storage)
    return SparseTensor.from_checked(checked_copy(storage, declared))
