"""The lanes of a slice of rows, and the work of its slots."""

from __future__ import annotations

from math import gcd

LANES = 8
"""Rows in a vector: the number of elements that are gathered by scalar loads (measured with 4, 8 and 16 on a
CPU with slow and one with fast gathers; 8 was never slower, at 1.2 to 2.2 times the speed of scalar code on
CSR)."""

MAX_SLICE_VECTORS = 8
"""Maximum number of vectors of a slice, whose results take a register each."""

WORK_PER_SLICE = 2
"""Cost of a slice besides its slots, in slots: its results are stored to rows in any order (measured: 20
cycles, where a slot of 8 rows takes 11)."""

WORK_PER_SLOT = 8
"""Vectors of work in a slot: the elements of its rows are gathered one by one."""


def work_per_slot(block_height: int, block_width: int) -> int:
    """Return the vectors of work in a slot of a slice: its elements, or the blocks of its block rows. Their
    rows share the elements that are gathered.

    >>> work_per_slot(1, 1), work_per_slot(3, 3)
    (8, 30)
    """
    return block_width * (WORK_PER_SLOT + block_height - 1)


def slice_lanes(height: int, most: int = LANES) -> int:
    """Return the lanes of the vectors that hold the rows of a slice, at most this many; 1 if vectors do not
    pay.

    >>> slice_lanes(32), slice_lanes(12), slice_lanes(7), slice_lanes(1024), slice_lanes(32, 16)
    (8, 4, 1, 1, 16)
    """
    lanes = gcd(height, most)
    return lanes if height <= MAX_SLICE_VECTORS * lanes else 1
