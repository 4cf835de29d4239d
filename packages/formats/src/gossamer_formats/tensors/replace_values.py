"""A tensor with other values in the same places."""

from __future__ import annotations

from gossamer_formats.storage import Storage, values_handle, with_value_dtype
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_support.arrays import Array


def replace_values(tensor: SparseTensor, values: Array, dtype: str | None = None) -> SparseTensor:
    """Return a tensor with other values in the same places, of another dtype unless that is None.

    Index arrays are those of the tensor, and so is the pattern with all that is derived from them; those of a
    tensor that borrows its arrays are copied and checked. The values are not copied: they are contiguous, one
    for each that the tensor stores, and must not be written to while the result is used.

    >>> import numpy as np
    >>> from scipy.sparse import eye_array
    >>> replace_values(SparseTensor(eye_array(2)), np.array([2.0, 3.0])).toarray()
    array([[2., 0.],
           [0., 3.]])
    """
    storage = tensor.checked_storage()
    described = storage.description
    if dtype is not None and dtype != described.buffer.dtype:
        described = with_value_dtype(described, dtype)
    arrays = {**storage.arrays, values_handle(described): values}
    result = SparseTensor.from_new(Storage(described, storage.sizes, arrays))
    if not tensor.is_borrowed:
        result.pattern = tensor.pattern
    return result
