"""New arrays for results."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gossamer_machine.cache_line import LINE_BYTES

LARGE_ARRAY = 1 << 20
"""Minimum bytes of an array that begins at a cache line. NumPy's begin 16 bytes after one, so that every
vector of 64 bytes crosses a line. A smaller array is not worth the 2 microseconds that it costs."""


def new_array(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialized array in C order, aligned to a cache line if it is large."""
    dtype = np.dtype(dtype)
    is_large = prod(shape) * dtype.itemsize >= LARGE_ARRAY
    return aligned_empty(shape, dtype) if is_large else np.empty(shape, dtype)


def aligned_empty(
    shape: tuple[int, ...], dtype: npt.DTypeLike, *, offset: int = 0
) -> npt.NDArray[Any]:
    """Return an uninitialized array in C order that begins `offset` bytes after the start of a cache line.

    >>> aligned_empty((1000, 300), "float32").ctypes.data % 64
    0
    """
    dtype = np.dtype(dtype)
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + LINE_BYTES + offset, np.uint8)
    first = -memory.ctypes.data % LINE_BYTES + offset
    return memory[first : first + size].view(dtype).reshape(shape)
