"""A format description with its sizes and arrays, and the numbers of elements that follow from these."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_formats.description_sizes import MAX_FORMATS, evaluate, evaluated_shape
from gossamer_formats.value_dtypes import converted_values
from gossamer_ir.core.axis_kinds import indptr_of, width_of
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class Storage(NamedTuple):
    """A format description, the values of its scalar parameters (`sizes`) and the arrays of its handles.

    The constructor checks nothing; `checks.require_valid_storage` does.

    >>> import numpy as np
    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 1]), "indices": np.array([2]), "data": np.ones(1)}
    >>> Storage(csr("float64"), {"m": 1, "n": 4, "nnz": 1}, arrays).shape
    (1, 4)
    """

    description: FormatDescription
    sizes: Mapping[str, int]
    arrays: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return evaluated_shape(self.description, self.sizes)

    @property
    def values(self) -> Array:
        """The array of values."""
        return self.arrays[values_handle(self.description)]


def values_handle(description: FormatDescription) -> str:
    """Return the name of the array of values."""
    return description.buffer.handle or description.buffer.name


def element_count(storage: Storage, axis_name: str | None) -> int:
    """Return the number of elements of an axis, in all fibers; 1 for None, the parent of a root axis."""
    if axis_name is None:
        return 1
    axis = items_by_name(storage.description.axes)[axis_name]
    indptr = indptr_of(axis)
    if indptr is None:
        width = evaluate(width_of(axis), storage.sizes)
        return element_count(storage, axis.parent) * width
    if indptr.nnz is None:
        return int(storage.arrays[indptr.handle][-1])
    return evaluate(indptr.nnz, storage.sizes)


def value_count(storage: Storage) -> int:
    """Return the number of values that the buffer stores, extra storage included.

    This is the product of the sizes of the axes that have no child in the buffer.
    """
    names = storage.description.buffer.axes
    axes = items_by_name(storage.description.axes)
    parents = {axes[name].parent for name in names}
    count = 1
    for name in names:
        # An axis with a child is counted by the child, whose elements are over all fibers.
        if name not in parents:
            count *= element_count(storage, name)
    return count + storage.description.buffer.extra_storage


@lru_cache(maxsize=MAX_FORMATS)
def with_value_dtype(description: FormatDescription, dtype: str) -> FormatDescription:
    """Return the description with another dtype of its values."""
    buffer = replace(description.buffer, dtype=dtype)
    return replace(description, buffer=buffer)


def with_values_in(storage: Storage, dtype: str) -> Storage:
    """Return the storage with its values converted to another dtype."""
    values = converted_values(storage.values, storage.description.buffer.dtype, dtype)
    arrays = {**storage.arrays, values_handle(storage.description): values}
    return Storage(with_value_dtype(storage.description, dtype), storage.sizes, arrays)


def index_array(storage: Storage, name: str) -> Array:
    """Return an index array of the map, in its shape."""
    buffer = next(array for array in storage.description.index_arrays if array.name == name)
    array = storage.arrays[buffer.handle or name]
    return array.reshape([evaluate(size, storage.sizes) for size in buffer.shape])
