"""The products that warpgroups have begun: the registers and the memory that nothing else may use yet."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers, TrackedMemory
from gossamer_cuda_mma_sp.interpreter.thread_registers import ThreadRegisters
from gossamer_support.arrays import Array


class BegunProduct(msgspec.Struct, frozen=True):
    """A product of some threads: the registers that it uses, those of the sums among them, and the bytes of
    shared memory that it reads. `groups` are the numbers of the groups of each thread, -1 as long as there is
    none."""

    lanes: LaneNumbers
    registers: tuple[str, ...]
    sums: tuple[str, ...]
    bytes: LaneNumbers
    groups: LaneNumbers


class AsyncProducts:
    """The products of all threads that are not complete. The results are in the registers at once, but
    nothing can read them before a wait.

    >>> products = AsyncProducts(128)
    >>> products.commit(np.arange(128))
    >>> products.is_idle
    True
    """

    def __init__(self, threads: int) -> None:
        self._committed = np.zeros(threads, np.int64)
        self._begun: list[BegunProduct] = []

    @property
    def is_idle(self) -> bool:
        """True if all products are complete."""
        return not self._begun

    def begin(
        self,
        lanes: LaneNumbers,
        registers: tuple[str, ...],
        sums: tuple[str, ...],
        addresses: LaneNumbers,
    ) -> None:
        """Add a product that threads begin."""
        groups = np.full(lanes.size, -1)
        self._begun.append(BegunProduct(lanes, registers, sums, addresses, groups))

    def commit(self, lanes: LaneNumbers) -> None:
        """Make a group of the products that each of some threads has begun."""
        for product in self._begun:
            is_new = (product.groups < 0) & np.isin(product.lanes, lanes)
            product.groups[is_new] = self._committed[product.lanes[is_new]]
        self._committed[lanes] += 1

    def wait(
        self, lanes: LaneNumbers, pending: int, registers: ThreadRegisters, shared: TrackedMemory
    ) -> None:
        """Complete all groups of some threads but the last `pending` ones."""
        left = []
        for product in self._begun:
            is_done = self._is_done(product, lanes, pending)
            registers.release(product.registers, product.lanes[is_done])
            if is_done.all():
                shared.end_async_read(product.bytes)
            else:
                # The memory is read until the last of the threads has waited.
                rest, groups = product.lanes[~is_done], product.groups[~is_done]
                left.append(replace(product, lanes=rest, groups=groups))
        for product in left:
            # Others may use the same registers, and be complete.
            registers.hold(product.registers, product.sums, product.lanes)
        self._begun = left

    def _is_done(self, product: BegunProduct, lanes: LaneNumbers, pending: int) -> Array:
        oldest = self._committed[product.lanes] - pending
        is_old = (product.groups >= 0) & (product.groups < oldest)
        return np.asarray(is_old & np.isin(product.lanes, lanes))
