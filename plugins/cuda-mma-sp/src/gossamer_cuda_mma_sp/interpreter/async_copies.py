"""The asynchronous copies of a grid: what threads copy, and the groups that they have not waited for."""

from __future__ import annotations

import msgspec
import numpy as np

from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers
from gossamer_support.arrays import Array


class CopiedBytes(msgspec.Struct, frozen=True):
    """The copies of some threads by one instruction: the threads, the offsets of their bytes, and the bytes.
    `groups` are the numbers of the groups of each thread, -1 as long as there is none."""

    lanes: LaneNumbers
    offsets: LaneNumbers
    data: Array
    groups: LaneNumbers

    def select_threads(self, chosen: Array) -> CopiedBytes:
        """Return the part of some of the threads."""
        return CopiedBytes(
            self.lanes[chosen], self.offsets[chosen], self.data[chosen], self.groups[chosen]
        )


class AsyncCopies:
    """The copies of all threads that are not complete.

    >>> copies = AsyncCopies(2)
    >>> both = np.arange(2)
    >>> copies.begin(both, both * 4, np.zeros((2, 4), np.uint8))
    >>> copies.commit(both)
    >>> [part.offsets.tolist() for part in copies.wait(both[:1], 0)]
    [[0]]
    """

    def __init__(self, threads: int) -> None:
        self._committed = np.zeros(threads, np.int64)
        self._copies: list[CopiedBytes] = []

    def begin(self, lanes: LaneNumbers, offsets: LaneNumbers, data: Array) -> None:
        """Add what threads begin to copy."""
        self._copies.append(CopiedBytes(lanes, offsets, data, np.full(lanes.size, -1)))

    def commit(self, lanes: LaneNumbers) -> None:
        """Make a group of what each of some threads has begun to copy."""
        for copy in self._copies:
            is_new = (copy.groups < 0) & np.isin(copy.lanes, lanes)
            copy.groups[is_new] = self._committed[copy.lanes[is_new]]
        self._committed[lanes] += 1

    def wait(self, lanes: LaneNumbers, pending: int) -> list[CopiedBytes]:
        """Return what some threads copied in all of their groups but the last `pending` ones."""
        complete, left = [], []
        for copy in self._copies:
            oldest = self._committed[copy.lanes] - pending
            is_done = (copy.groups >= 0) & (copy.groups < oldest) & np.isin(copy.lanes, lanes)
            complete.append(copy.select_threads(is_done))
            left.append(copy.select_threads(~is_done))
        self._copies = [copy for copy in left if copy.lanes.size]
        return [copy for copy in complete if copy.lanes.size]
