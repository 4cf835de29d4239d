"""Pauses Python's garbage collection while modules are imported and kernels are built."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

FEW_MODULES = 8
"""The number of modules whose objects are left to the next collections: to visit them takes less time than to
count what the program has frozen, and most builds that import anything import one module."""


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause garbage collection until the end of the context.

    A build imports modules and makes many objects that live, which triggers collections. Each full one also
    visits the objects of NumPy, SciPy and the user's program (measured: 18 of 215 ms of a first call). Nested
    and concurrent uses are allowed: the first that ends resumes collection.

    >>> with pause_collection():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    modules = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if len(sys.modules) > modules + FEW_MODULES:
                _make_all_objects_old()
            gc.enable()


def _make_all_objects_old() -> None:
    """Move all objects to the oldest generation, without visiting them.

    The objects that a module defines live on, but the next two collections would visit them (measured: 11 of
    240 ms of a first call, and as many of a later one). Garbage is moved, too; there is little of it, and
    each module is imported once.
    """
    # Otherwise `unfreeze` would undo what the program has frozen.
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()
