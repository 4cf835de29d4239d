"""Orders of small integers by counting, in a time that is linear in their number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from gossamer_support.arrays import Array


class CountedOrder(NamedTuple):
    """The places of keys in stable order, and for each key the offset of its first place."""

    offsets: Array
    order: Array


def counting_order(keys: Array, count: int) -> CountedOrder:
    """Return the stable order of keys, which are integers from 0 to `count` - 1.

    >>> counting_order(np.array([2, 0, 2, 1]), 3).order.tolist()
    [1, 3, 0, 2]
    """
    # A matrix with one element in each row: SciPy sorts it by columns, in compiled code.
    rows = np.arange(keys.size + 1, dtype=keys.dtype)
    marks = np.empty(keys.size, np.bool_)
    by_key = scipy.sparse.csr_array((marks, keys, rows), shape=(keys.size, count)).tocsc()
    return CountedOrder(by_key.indptr, by_key.indices)
