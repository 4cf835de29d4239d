"""Integers and flags that recorded calls read from arrays."""

from __future__ import annotations

import numpy as np

from gossamer_support.arrays import Array


def size_of(array: Array) -> int:
    """Return the number of elements of an array.

    >>> size_of(np.zeros(3))
    3
    """
    return array.size


def first_of(values: Array) -> int:
    """Return the first element of an array.

    >>> first_of(np.array([2, 5]))
    2
    """
    return int(values[0])


def has_flag(flags: Array) -> bool:
    """Return whether one of a few flags is set.

    >>> has_flag(np.array([0, 1], np.uint8)), has_flag(np.zeros(2, np.uint8))
    (True, False)
    """
    # Takes a third of the time of `flags.any()`.
    return any(flags.tolist())


def total_of(offsets: Array) -> int:
    """Return the number of all slots, which is after the first slots of fibers.

    >>> total_of(np.array([0, 2, 7], np.int32))
    7
    """
    return int(offsets[-1])


def sum_of(lengths: Array) -> int:
    """Return the sum of integers.

    >>> sum_of(np.array([2, 1], np.int32))
    3
    """
    return int(lengths.sum(dtype=np.int64))


def longest_of(lengths: Array) -> int:
    """Return the largest of some lengths, 0 if there are none.

    >>> longest_of(np.array([2, 5]))
    5
    """
    return int(lengths.max(initial=0))
