"""The adjacent features that one thread of a grid computes, or adds up.

A thread with several adjacent features loads them with one instruction, and the element of the sparse matrix
and its column once for all of them (Huang et al., GE-SpMM, SC 2020, section 3.3: coarsening by warps). There
are fewer threads to hide latencies.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.grid_threads import feature_threads

VECTOR_BYTES = 16
"""The bytes that one instruction of a thread loads at most."""

MAX_THREAD_FEATURES = 4
"""Features of a thread at most: each is a sum in a register."""

FILLING_THREADS = 1024
"""Threads of a multiprocessor from which latencies are hidden: half of those that it has room for."""


def thread_features(grid: Grid, dtype: str, *, features: int | None, rows: int | None) -> int:
    """Return how many adjacent features of a row a thread computes; 1 if vectors do not pay.

    A row keeps whole warps, since the threads of a warp wait for the longest of its rows, and threads still
    fill the multiprocessors. An unknown number of rows is taken to be large.

    >>> gpu = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    >>> [thread_features(gpu, "float32", features=count, rows=None) for count in (32, 64, 96, 128)]
    [1, 2, 1, 4]
    >>> thread_features(gpu, "float32", features=128, rows=2000)
    2
    """
    lanes = min(MAX_THREAD_FEATURES, VECTOR_BYTES * 8 // DType.parse(dtype).bits)
    while lanes > 1:
        threads = None if features is None or rows is None else rows * features // lanes
        is_filled = threads is None or threads >= grid.multiprocessors * FILLING_THREADS
        if features and features % (grid.warp * lanes) == 0 and is_filled:
            return lanes
        lanes //= 2
    return 1


def summed_features(grid: Grid, dtype: str, *, features: int | None) -> int:
    """Return how many adjacent features a thread loads with one instruction, of a sum over features that
    several threads compute: 16 bytes, or fewer if vectors would leave threads without any (Yu et al., PRedS,
    2022: vectors first, then a reduction by shuffles).

    >>> gpu = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    >>> [summed_features(gpu, "float32", features=count) for count in (8, 32, 36, 96, 128)]
    [4, 4, 1, 1, 4]
    """
    width = VECTOR_BYTES * 8 // DType.parse(dtype).bits
    while width > 1:
        vectors = 0 if features is None or features % width else features // width
        if vectors > 1 and vectors % feature_threads(vectors, grid) == 0:
            return width
        width //= 2
    return 1
