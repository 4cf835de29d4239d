"""The memory of an array: where it is, and in which form."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer_backend.arguments.device import HOST, Device
from gossamer_support.arrays import Array

ElementType: TypeAlias = "np.dtype[Any] | str"
"""A dtype of NumPy, or the name of one that NumPy lacks."""


class ArrayView(NamedTuple):
    """The memory of an array of any package, which is not aligned for its dtype in all cases."""

    array: Any
    """The array itself: one of NumPy if the memory is the host's, otherwise the object that was passed."""
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: ElementType
    device: Device
    is_read_only: bool
    is_contiguous: bool
    """True if elements are stored row by row, without gaps."""
    owner: object = None
    """Keeps the memory alive, besides the array."""
    stream: object = None
    """The contents are there once the work on this stream is done; None: for the stream for which the
    view was made."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements, whose dtype NumPy has."""
        assert not isinstance(self.dtype, str)
        return prod(self.shape) * self.dtype.itemsize

    def reshape(self, shape: tuple[int, ...]) -> ArrayView:
        """Return a contiguous view in another shape of equal size; the `array` of a device stays as it is."""
        array = self.array.reshape(shape) if self.device == HOST else self.array
        assert not isinstance(self.dtype, str)
        strides = contiguous_strides(shape, self.dtype.itemsize)
        return self._replace(array=array, shape=shape, strides=strides)


def numpy_view(array: Array) -> ArrayView:
    """Return the view of an array of NumPy.

    >>> numpy_view(np.zeros((2, 3), np.float32).T).is_contiguous
    False
    """
    flags = array.flags
    return ArrayView(
        array,
        address(array),
        array.shape,
        array.strides,
        array.dtype,
        HOST,
        not flags.writeable,
        flags.c_contiguous,
    )


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of an array that is stored row by row.

    >>> contiguous_strides((2, 3), 4)
    (12, 4)
    """
    strides: list[int] = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))


def is_stored_by_rows(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether elements follow each other without gaps; the strides of dimensions of one element do
    not matter.

    >>> is_stored_by_rows((1, 3), (99, 4), 4), is_stored_by_rows((3, 2), (4, 12), 4)
    (True, False)
    """
    rows = zip(shape, strides, contiguous_strides(shape, itemsize), strict=True)
    return 0 in shape or all(size == 1 or stride == step for size, stride, step in rows)


def _address_of_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


_HEAD_BYTES = object.__basicsize__
"""NumPy's structure of an array begins with the head of all objects, and then has the address."""


_pointer_at = ctypes.c_void_p.from_address


def _address_in_structure(array: Array) -> int:
    return _pointer_at(id(array) + _HEAD_BYTES).value or 0


def _is_in_structure() -> bool:
    """Return whether arrays are structures at the address `id`, as in CPython."""
    probe = np.empty(3, np.uint8)
    is_readable = sys.implementation.name == "cpython"
    return is_readable and _address_in_structure(probe[1:]) == _address_of_interface(probe) + 1


# Takes a sixth of the time of the array interface.
address: Callable[[Array], int] = (
    _address_in_structure if _is_in_structure() else _address_of_interface
)
"""Returns the address of the first element of an array of NumPy."""
