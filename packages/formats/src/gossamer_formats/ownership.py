"""Arrays that nobody can write to.

NumPy lets the owner of an array make it writeable again, but not an array over a read-only buffer;
so an owned array stands on a read-only `memoryview` of a private copy. Others make such views, too,
of memory that they can write to; so the views that were made here are remembered.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import numpy as np

from gossamer_formats.storage import Array

_views: WeakValueDictionary[int, memoryview] = WeakValueDictionary()
"""The views made here that are alive, by their identity."""


def owned(array: Array) -> Array:
    """The array itself where it is owned already, else a private, contiguous, read-only copy."""
    if is_owned(array):
        return array
    return adopt(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def adopt(array: Array) -> Array:
    """A read-only array over the memory of a fresh one, to which no other reference may be kept."""
    found: Array = np.asarray(array.data.toreadonly())
    view = found.base
    assert isinstance(view, memoryview)
    _views[id(view)] = view
    return found


def is_owned(array: Array) -> bool:
    """Whether the array was made by `owned` or `adopt`."""
    base = array.base
    return isinstance(base, memoryview) and _views.get(id(base)) is base and _is_whole(array, base)


def _is_whole(array: Array, base: memoryview) -> bool:
    return array.flags.c_contiguous and array.nbytes == base.nbytes
