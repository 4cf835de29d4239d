"""Arrays that cannot be written to.

A read-only NumPy array can be made writeable again, unless its base is a read-only buffer. Hence an owned
array is based on a read-only `memoryview` of a private copy. Such a view of memory that is writeable
elsewhere looks the same, so this module keeps track of the views that it has made.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

import numpy as np

from gossamer_formats.storage import Array

_views: WeakValueDictionary[int, memoryview] = WeakValueDictionary()
"""The live views made by this module, by identity."""


def owned_array(array: Array) -> Array:
    """Return the array itself if it is owned, else a private, contiguous, read-only copy.

    >>> array = np.arange(3)
    >>> copy = owned_array(array)
    >>> copy.flags.writeable, owned_array(copy) is copy, np.shares_memory(copy, array)
    (False, True, False)
    """
    if is_owned(array):
        return array
    return adopt_array(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def adopt_array(array: Array) -> Array:
    """Return a read-only array over the memory of a new array, to which the caller keeps no reference."""
    read_only: Array = np.asarray(array.data.toreadonly())
    view = read_only.base
    assert isinstance(view, memoryview)
    _views[id(view)] = view
    return read_only


def is_owned(array: Array) -> bool:
    """True if the array was made by `owned_array` or `adopt_array`."""
    base = array.base
    return isinstance(base, memoryview) and _views.get(id(base)) is base and _is_whole(array, base)


def _is_whole(array: Array, base: memoryview) -> bool:
    return array.flags.c_contiguous and array.nbytes == base.nbytes
