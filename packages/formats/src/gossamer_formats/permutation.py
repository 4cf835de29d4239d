"""Permutations of values: for each stored value, its index among the values of a source.

A value that fills a slot without an element has no such index. Its entry is -1, which selects the last
element of an array in NumPy: one more element at the end of the array is the one of all such slots.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_support.arrays import Array

UNSTORED = -1
"""The entry of a permutation for a value that fills a slot without an element."""


def with_fill(values: Array, fill: Any) -> Array:
    """Return values with one more at the end, which `UNSTORED` selects.

    >>> with_fill(np.array([4.0, 5.0]), 0)[[1, UNSTORED, 0]]
    array([5., 0., 4.])
    """
    return np.append(values, values.dtype.type(fill))


def compose(first: Array, second: Array) -> Array:
    """Return the permutation of values that were stored twice: from a source by `first`, then by `second`.

    >>> compose(np.array([2, 0, UNSTORED]), np.array([1, UNSTORED, 2, 0]))
    array([ 0, -1, -1,  2])
    """
    composed: Array = with_fill(first, UNSTORED)[second]
    return composed


def occupied_entries(permutation: Array) -> Array:
    """Return the entries of a permutation but for slots without an element.

    >>> occupied_entries(np.array([2, UNSTORED, 0]))
    array([2, 0])
    """
    value_indices: Array = permutation[permutation != UNSTORED]
    return value_indices


def stored_count(permutation: Array) -> int:
    """Return the number of values of a permutation that are elements.

    >>> stored_count(np.array([2, UNSTORED, 0]))
    2
    """
    return int(np.count_nonzero(permutation != UNSTORED))
