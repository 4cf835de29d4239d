"""Arrays that nobody can write to.

NumPy lets the owner of an array make it writeable again, but not an array over a read-only buffer;
so an owned array stands on a read-only `memoryview` of a private copy.
"""

from __future__ import annotations

import numpy as np

from gossamer_formats.storage import Array


def owned(array: Array) -> Array:
    """The array itself where it is owned already, else a private, contiguous, read-only copy."""
    if is_owned(array):
        return array
    return adopt(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def adopt(array: Array) -> Array:
    """A read-only array over the memory of a fresh one, to which no other reference may be kept."""
    return np.asarray(array.data.toreadonly())


def is_owned(array: Array) -> bool:
    """Whether the array was made by `owned` or `adopt`."""
    base = array.base
    return isinstance(base, memoryview) and base.readonly and array.flags.c_contiguous
