"""Memory of a device that arrays and calls take and give back."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_cuda_mma_sp.driver.cuda_driver import CudaDriver

_SMALL, _LARGE = 512, 2 << 20
"""The multiples to which sizes are rounded: up to the large one, and above."""


class MemoryPool:
    """Memory that was given back is used again by the stream that used it. Work that still uses it is done
    before there, so nothing waits, unless another stream used it, too. It is called while the device is
    current.

    The interpreter finds accesses out of bounds and before a write only in memory that is new and exact, so
    an emulated device keeps none.
    """

    def __init__(self, driver: CudaDriver) -> None:
        self._driver = driver
        self._unused: dict[tuple[int, int], list[_UnusedMemory]] = {}

    def take(self, size: int, stream: int) -> MemoryBlock:
        """Return memory of at least this size for a stream. Its contents are undefined."""
        rounded = size if self._driver.is_emulated else _round_up(size)
        # Without a lock: a collected block is given back at any time, also while one is taken.
        try:
            unused = self._unused[rounded, stream].pop()
        except (KeyError, IndexError):
            return MemoryBlock(self, self._driver.allocate(rounded), rounded, stream)
        if unused.has_other_streams:
            # All of them: a stream may be destroyed before its work is done.
            self._driver.wait(None)
        return MemoryBlock(self, unused.address, rounded, stream)

    def give_back(
        self, address: int, size: int, stream: int, *, has_other_streams: bool = False
    ) -> None:
        """Take memory back, which work on other streams than its own may use until it is done."""
        if self._driver.is_emulated:
            self._driver.free(address)
            return
        unused = _UnusedMemory(address, has_other_streams)
        self._unused.setdefault((size, stream), []).append(unused)

    def release(self) -> None:
        """Free all memory that is not used, when all work is done."""
        self._driver.wait(None)
        for parts in list(self._unused.values()):
            while parts:
                self._driver.free(parts.pop().address)


class _UnusedMemory(NamedTuple):
    """Memory that was given back, and whether work on other streams than its own may still use it."""

    address: int
    has_other_streams: bool


class MemoryBlock:
    """Memory that goes back to its pool when it is collected."""

    def __init__(self, pool: MemoryPool, address: int, size: int, stream: int) -> None:
        self._pool, self.address, self.size, self._stream = pool, address, size, stream
        self.other_streams: set[int] = set()

    def use_on(self, stream: int) -> None:
        """Note that work on a stream uses the memory."""
        if stream != self._stream:
            self.other_streams.add(stream)

    def __del__(self) -> None:
        self._pool.give_back(
            self.address, self.size, self._stream, has_other_streams=bool(self.other_streams)
        )


def _round_up(size: int) -> int:
    step = _SMALL if size <= _LARGE else _LARGE
    return max(1, -(-size // step)) * step
