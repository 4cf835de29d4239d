"""Arrays that cannot be written to.

A read-only NumPy array can be made writeable again, unless its base is a read-only buffer. Hence an owned
array is based on a read-only `memoryview` of a private copy. Such a view of memory that is writeable
elsewhere looks the same, so this module keeps track of the views that it has made.
"""

from __future__ import annotations

from weakref import ReferenceType, ref

import numpy as np

from gossamer_support.arrays import Array

_views: dict[int, ReferenceType[memoryview]] = {}
"""The views made by this module, by identity. Those that no longer live are removed when there are many:
functions that are called when one dies take longer."""

_max_views = 1024
"""The number of views from which those that no longer live are removed."""


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
    _keep(view)
    return read_only


def _keep(view: memoryview) -> None:
    """Remember a view that this module has made."""
    global _max_views
    if len(_views) >= _max_views:
        # Another thread may make a view with the identity of a dead one meanwhile: it is copied when used.
        for number in [number for number, kept in list(_views.items()) if kept() is None]:
            _views.pop(number, None)
        _max_views = max(1024, 2 * len(_views))
    _views[id(view)] = ref(view)


def is_owned(array: Array) -> bool:
    """Return whether the array was made by `owned_array` or `adopt_array`."""
    base = array.base
    if not isinstance(base, memoryview):
        return False
    kept = _views.get(id(base))
    return kept is not None and kept() is base and _is_whole(array, base)


def _is_whole(array: Array, base: memoryview) -> bool:
    return array.flags.c_contiguous and array.nbytes == base.nbytes
