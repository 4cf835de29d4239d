"""The memory of the threads of a grid: where an address of an instruction is, and who accesses it."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gossamer_cuda_mma_sp.interpreter.memory import (
    GLOBAL_BASE,
    LOCAL_BASE,
    SHARED_BASE,
    DeviceFaultError,
    LaneNumbers,
    PrivateMemory,
    ThreadNumbers,
    TrackedMemory,
)
from gossamer_cuda_mma_sp.interpreter.program import KernelProgram
from gossamer_cuda_mma_sp.interpreter.thread_registers import ThreadRegisters
from gossamer_ir.errors import InternalError

_ADDRESS = re.compile(r"^\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]$")
_ADDRESS_DTYPE = np.dtype(np.uint64)


class ThreadMemory:
    """The memory of some blocks of threads. `blocks` are the numbers of the blocks in the grid."""

    def __init__(
        self,
        program: KernelProgram,
        registers: ThreadRegisters,
        global_memory: TrackedMemory,
        *,
        blocks: LaneNumbers,
        block_threads: int,
    ) -> None:
        count = blocks.size * block_threads
        thread = np.tile(np.arange(block_threads), blocks.size)
        self._registers, self._global = registers, global_memory
        self._block = np.repeat(np.arange(blocks.size), block_threads)
        self._owner_stride = block_threads + 1
        self.thread_numbers = np.repeat(blocks, block_threads) * self._owner_stride + thread
        self._epochs = np.zeros(count, np.int64)
        self._last_owners: tuple[LaneNumbers, ThreadNumbers] | None = None
        self._shared_bytes = _round_up(program.shared_bytes, 16)
        self._local_bytes = _round_up(program.local_bytes, 16)
        self.shared = _shared_memory(program.shared_bytes, blocks.size)
        self._local = _local_memory(program.local_bytes, count)

    def place(self, text: str, space: str, lanes: LaneNumbers) -> tuple[TrackedMemory, LaneNumbers]:
        """Return the memory of a space, and the offsets of an address in it; raise `DeviceFaultError` for one
        that is out of bounds."""
        name, offset = _parse_address(text)
        address = self._registers.read(name, _ADDRESS_DTYPE, lanes).astype(np.int64) + offset
        if space == "generic":
            space = _space_of(address)
            starts = {"global": 0, "shared": SHARED_BASE, "local": LOCAL_BASE}
            address = address - starts[space]
        if space == "global":
            return self._global, address - GLOBAL_BASE
        size = self._shared_bytes if space == "shared" else self._local_bytes
        # Without a sign, an address before the first one is beyond the last.
        if np.count_nonzero(address.view(np.uint64) >= size):
            raise DeviceFaultError(f"a thread accesses {space} memory out of bounds")
        if space == "shared":
            return self.shared, address + self._block[lanes] * size
        return self._local, address + lanes * size

    def shared_offsets(self, addresses: LaneNumbers, lanes: LaneNumbers) -> LaneNumbers:
        """Return the offsets of addresses in the shared memory of the block of some threads; raise
        `DeviceFaultError` for one that is out of bounds."""
        if ((addresses < 0) | (addresses >= self._shared_bytes)).any():
            raise DeviceFaultError("a product reads shared memory out of bounds")
        offsets: LaneNumbers = addresses + self._block[lanes[0]] * self._shared_bytes
        return offsets

    def owners(self, lanes: LaneNumbers) -> ThreadNumbers:
        """Return the threads of lanes, as memory tells them apart."""
        # Instructions between two branches have the same array of lanes.
        if self._last_owners is None or self._last_owners[0] is not lanes:
            numbers, epochs = self.thread_numbers[lanes], self._epochs[lanes]
            self._last_owners = lanes, ThreadNumbers(numbers, epochs, self._owner_stride)
        return self._last_owners[1]

    def pass_barrier(self, is_waiting: npt.NDArray[np.bool_]) -> None:
        """Note that threads have waited for each other: they see what the others wrote."""
        self._last_owners = None
        self._epochs[is_waiting] += 1


def parameter_name(text: str) -> str:
    """Return the parameter that an operand addresses.

    >>> parameter_name("[f_param_0]")
    'f_param_0'
    """
    return _parse_address(text)[0]


@lru_cache(1024)
def _parse_address(text: str) -> tuple[str, int]:
    """Return the register or the parameter of an address, and the offset that is added to it."""
    match = _ADDRESS.match(text)
    if match is None:
        raise InternalError(f"The interpreter does not know the address '{text}'.")
    return match[1], int(match[2] or 0)


def _shared_memory(size: int, blocks: int) -> TrackedMemory:
    """Return the memory of blocks. Each ends with a whole word of 4 bytes: an atomic update of a smaller
    element exchanges the word that it is in."""
    offsets = np.tile(np.arange(_round_up(size, 16)), blocks)
    data = np.full(offsets.size, 0xA5, np.uint8)
    return TrackedMemory("shared", data, offsets < _round_up(size, 4), offsets >= size)


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _local_memory(size: int, threads: int) -> PrivateMemory:
    """Return the memory of threads. Each ends with a multiple of 16 bytes, so that no aligned access reaches
    that of the next thread."""
    offsets = np.tile(np.arange(_round_up(size, 16)), threads)
    data = np.full(offsets.size, 0xA5, np.uint8)
    return PrivateMemory("local", data, offsets < size, np.zeros(offsets.size, np.bool_))


def _space_of(address: LaneNumbers) -> str:
    """Return the memory of generic addresses, which must be one for all threads."""
    for space, low, high in (
        ("global", GLOBAL_BASE, 1 << 62),
        ("local", LOCAL_BASE, GLOBAL_BASE),
        ("shared", SHARED_BASE, LOCAL_BASE),
    ):
        if ((address >= low) & (address < high)).all():
            return space
    raise DeviceFaultError("a thread accesses an address that is not in its memory")
