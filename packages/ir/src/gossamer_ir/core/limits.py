"""Limits of modules: depth of nodes, in memory and as scripts, sizes of arrays, threads of blocks and of
warps."""

from __future__ import annotations

MAX_DEPTH = 190
"""The largest number of nodes on a path from a module to a leaf, both included: Python's parser refuses 200
nested brackets."""

MAX_SIZE = 2**48
"""The greatest value of a scalar in the shape of an array. No machine has memory for as many elements, and
sums of such sizes are far from wrapping in int64, which proofs rely on."""

WARP_LANES = 32
"""The threads of a block that run in lockstep, and exchange registers."""

MAX_BLOCK_THREADS = 1024
"""The largest number of threads of a block of a grid, along one axis and in all."""

MAX_GRID_BLOCKS = 2**31 - 1
"""The largest number of blocks of a grid along one axis. A launch of more is refused."""
