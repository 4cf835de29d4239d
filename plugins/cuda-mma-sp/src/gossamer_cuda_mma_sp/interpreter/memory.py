"""The memory of a grid: global memory of a device, shared memory of blocks, and local memory of threads.

An access out of bounds, of an element that nothing wrote, or of one that another thread accesses at the same
time is an error.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gossamer_support.arrays import Array

LaneNumbers: TypeAlias = npt.NDArray[np.int64]
"""A number for each thread."""

GLOBAL_BASE = 1 << 40
"""The first address of global memory."""
SHARED_BASE = 1 << 30
LOCAL_BASE = 1 << 31
"""The first generic addresses of the shared memory of a block, and of the local memory of a thread."""
_ZONE = 256
"""The bytes to a multiple of which allocations are rounded; as many after each may not be accessed."""

NOBODY, SEVERAL = -1, -2


class DeviceFaultError(Exception):
    """A kernel did what ends it, or may end it, on a device. The message says what."""


class GlobalMemory:
    """The global memory of a device: bytes, and which of them are allocated and have been written."""

    def __init__(self) -> None:
        self.bytes = np.zeros(0, np.uint8)
        self.is_allocated = np.zeros(0, np.bool_)
        self.is_written = np.zeros(0, np.bool_)
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        """Return the address of new memory, which nothing has written."""
        start = self.bytes.size
        rounded = _padded_size(size)
        self.bytes = np.append(self.bytes, np.full(rounded, 0xA5, np.uint8))
        self.is_allocated = np.append(self.is_allocated, np.arange(rounded) < -(-size // 4) * 4)
        self.is_written = np.append(self.is_written, np.arange(rounded) >= size)
        self._sizes[GLOBAL_BASE + start] = size
        return GLOBAL_BASE + start

    def free(self, address: int) -> None:
        """Free memory that `allocate` returned; nothing may access it any more."""
        self.is_allocated[self._range(address, self._sizes.pop(address))] = False
        # Memory at the end goes, so that calls that free all that they take do not make it grow.
        last = max(self._sizes, default=None)
        end = 0 if last is None else last - GLOBAL_BASE + _padded_size(self._sizes[last])
        self.bytes, self.is_allocated = self.bytes[:end], self.is_allocated[:end]
        self.is_written = self.is_written[:end]

    def write(self, address: int, data: Array) -> None:
        """Copy the bytes of a contiguous array to an address."""
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        part = self._range(address, raw.size)
        self.bytes[part], self.is_written[part] = raw, True

    def read(self, address: int, size: int) -> Array:
        """Return a copy of the bytes at an address."""
        return self.bytes[self._range(address, size)].copy()

    def _range(self, address: int, size: int) -> slice:
        start = address - GLOBAL_BASE
        if not (0 <= start <= self.bytes.size and self.is_allocated[start : start + size].all()):
            raise DeviceFaultError(f"{size} bytes at {address:#x} are not memory of the device")
        return slice(start, start + size)


def _padded_size(size: int) -> int:
    """Return the bytes of an allocation with those after it that may not be accessed."""
    return -(-max(size, 1) // _ZONE) * _ZONE + _ZONE


class TrackedMemory:
    """Bytes, and who accessed each of them: threads, whose epochs count the barriers that they passed."""

    def __init__(
        self,
        name: str,
        data: npt.NDArray[np.uint8],
        is_allocated: npt.NDArray[np.bool_],
        is_written: npt.NDArray[np.bool_],
    ) -> None:
        self._name, self._bytes = name, data
        self._is_allocated, self._is_written = is_allocated, is_written
        size = data.size
        self._writer = np.full(size, NOBODY, np.int64)
        self._reader = np.full(size, NOBODY, np.int64)
        self._write_epoch = np.zeros(size, np.int64)
        self._read_epoch = np.zeros(size, np.int64)
        self._is_atomic = np.zeros(size, np.bool_)
        self._is_in_flight = np.zeros(size, np.bool_)
        self._is_unfenced = np.zeros(size, np.bool_)
        self._async_reads = np.zeros(size, np.int64)

    def load(self, addresses: LaneNumbers, size: int, threads: ThreadNumbers) -> Array:
        """Return the bytes of an access of each thread."""
        part = self._check_addresses(addresses, size)
        self._require_written(part)
        # The first value of a loop that exchanges elements is read plainly.
        writers = self._plain_writers(part)
        self._require_no_race(writers, self._write_epoch[part], threads, "reads", "wrote")
        self._note(part, self._reader, self._read_epoch, threads)
        return self._bytes[part]

    def store(self, addresses: LaneNumbers, data: Array, threads: ThreadNumbers) -> None:
        """Store the bytes of each thread."""
        part = self._check_addresses(addresses, data.shape[1])
        self._store(part, data, threads)

    def begin_copy(self, addresses: LaneNumbers, size: int, threads: ThreadNumbers) -> None:
        """Begin an asynchronous copy to bytes of each thread. Nothing may access them before its end."""
        part = self._check_addresses(addresses, size)
        self._store(part, self._bytes[part], threads)
        self._is_in_flight[part] = True

    def complete_copy(self, addresses: LaneNumbers, data: Array, threads: ThreadNumbers) -> None:
        """Store what was copied, as if it were stored now."""
        self._is_in_flight[addresses[:, None] + np.arange(data.shape[1])] = False
        self.store(addresses, data, threads)

    def fence_stores(self, threads: ThreadNumbers) -> None:
        """Let asynchronous products read what threads stored."""
        self._is_unfenced &= ~np.isin(self._writer, threads.owners)

    def read_asynchronously(self, addresses: LaneNumbers, threads: ThreadNumbers) -> Array:
        """Return the bytes that a product reads for all threads of a block while they go on."""
        part = self._check_addresses(addresses, 1)
        if not self._is_written[part].all():
            raise DeviceFaultError(f"a product reads {self._name} memory that nothing wrote")
        if self._is_unfenced[part].any():
            raise DeviceFaultError(
                f"a product reads {self._name} memory that a thread stored without 'fence.proxy.async'"
            )
        every = threads.whole_block
        writers, epochs = self._writer[part], self._write_epoch[part]
        self._require_no_race(writers, epochs, every, "reads", "wrote")
        self._note(part, self._reader, self._read_epoch, every)
        return np.ascontiguousarray(self._bytes[part].ravel())

    def keep_async_read(self, addresses: LaneNumbers) -> None:
        """Let nothing write bytes of different offsets while a product reads them."""
        self._async_reads[addresses] += 1

    def end_async_read(self, addresses: LaneNumbers) -> None:
        """End the read of a product, of bytes of different offsets."""
        self._async_reads[addresses] -= 1

    def _store(self, part: LaneNumbers, data: Array, threads: ThreadNumbers) -> None:
        if len(part) > 1 and np.unique(part).size != part.size:
            raise DeviceFaultError(f"two threads write one element of {self._name} memory")
        if np.count_nonzero(self._async_reads[part]):
            raise DeviceFaultError(
                f"a thread writes {self._name} memory that a product may still read"
            )
        writers, epochs = self._writer[part], self._write_epoch[part]
        self._require_no_race(writers, epochs, threads, "writes", "wrote")
        readers, epochs = self._reader[part], self._read_epoch[part]
        self._require_no_race(readers, epochs, threads, "writes", "read")
        self._writer[part], self._write_epoch[part] = threads.owners, threads.epochs
        self._is_atomic[part] = False
        self._bytes[part], self._is_written[part] = data, True
        self._is_unfenced[part] = True

    def exchange(
        self, addresses: LaneNumbers, dtype: np.dtype[Any], threads: ThreadNumbers
    ) -> Array:
        """Return the memory as elements of a dtype. Each thread may read and write one of them as one
        operation, at `addresses` in bytes, one thread after the other."""
        part = self._check_addresses(addresses, dtype.itemsize)
        if self._is_race(self._plain_writers(part), self._write_epoch[part], threads):
            raise DeviceFaultError(
                f"a thread updates an element of {self._name} memory that another one writes plainly"
            )
        if not self._is_written[part].all():
            raise DeviceFaultError(f"a thread updates {self._name} memory that nothing wrote")
        # Barriers order the threads of one block alone.
        self._writer[part] = threads.block_numbers if self._name == "shared" else SEVERAL
        self._write_epoch[part], self._is_atomic[part] = threads.epochs, True
        whole = self._bytes.size // dtype.itemsize * dtype.itemsize
        return self._bytes[:whole].view(dtype)

    def _check_addresses(self, addresses: LaneNumbers, size: int) -> LaneNumbers:
        # `count_nonzero` takes a fifth of the time of `any` and `all`, if threads are few.
        if np.count_nonzero(addresses % size):
            raise DeviceFaultError(f"an address in {self._name} memory is not a multiple of {size}")
        part: LaneNumbers = addresses[:, None] + np.arange(size)
        is_outside = (addresses < 0) | (addresses + size > self._bytes.size)
        if np.count_nonzero(is_outside) or np.count_nonzero(self._is_allocated[part]) < part.size:
            raise DeviceFaultError(f"a thread accesses {self._name} memory out of bounds")
        if np.count_nonzero(self._is_in_flight[part]):
            raise DeviceFaultError(
                f"a thread accesses {self._name} memory to which an asynchronous copy is not complete"
            )
        return part

    def _require_written(self, part: LaneNumbers) -> None:
        if np.count_nonzero(self._is_written[part]) < part.size:
            raise DeviceFaultError(f"a thread reads {self._name} memory that nothing wrote")

    def _plain_writers(self, part: LaneNumbers) -> LaneNumbers:
        """Return who wrote bytes; `NOBODY` for those that were updated atomically."""
        return np.where(self._is_atomic[part], NOBODY, self._writer[part])

    def _require_no_race(
        self,
        others: LaneNumbers,
        epochs: LaneNumbers,
        threads: ThreadNumbers,
        does: str,
        did: str,
    ) -> None:
        if self._is_race(others, epochs, threads):
            raise DeviceFaultError(
                f"race: a thread {does} an element of {self._name} memory that another one {did}, without a "
                "barrier between them"
            )

    def _is_race(self, others: LaneNumbers, epochs: LaneNumbers, threads: ThreadNumbers) -> bool:
        is_other = threads.are_others(others)
        if not np.count_nonzero(is_other):
            return False
        # Threads of one block are ordered by barriers, those of different blocks are not.
        same_block = (others // threads.per_block) == (threads.owners // threads.per_block)
        is_ordered = same_block & (epochs < threads.epochs) & (others != SEVERAL)
        return bool((is_other & ~is_ordered).any())

    def _note(
        self, part: LaneNumbers, owners: LaneNumbers, epochs: LaneNumbers, threads: ThreadNumbers
    ) -> None:
        """Note who read bytes. The last number of a block stands for several of its threads."""
        before, noted = owners[part], threads.owners
        is_other = threads.are_others(before)
        if np.count_nonzero(is_other):
            same_block = before // threads.per_block == threads.owners // threads.per_block
            mixed = is_other & same_block & (epochs[part] == threads.epochs)
            noted = np.where(mixed, threads.block_numbers, threads.owners)
        owners[part], epochs[part] = noted, threads.epochs
        if len(part) == 1:
            return
        # Several threads may have read an element by one instruction.
        repeated = owners[part] != noted
        if np.count_nonzero(repeated):
            several = np.broadcast_to(threads.block_numbers, part.shape)
            owners[part[repeated]] = several[repeated]


class PrivateMemory(TrackedMemory):
    """Bytes of which each thread accesses only its own: there are no races."""

    def load(self, addresses: LaneNumbers, size: int, threads: ThreadNumbers) -> Array:
        """Return the bytes of an access of each thread."""
        part = self._check_addresses(addresses, size)
        self._require_written(part)
        return self._bytes[part]

    def store(self, addresses: LaneNumbers, data: Array, threads: ThreadNumbers) -> None:
        """Store the bytes of each thread."""
        part = self._check_addresses(addresses, data.shape[1])
        self._bytes[part], self._is_written[part] = data, True


class ThreadNumbers:
    """The numbers of threads that run an instruction, and the barriers that they passed. A block has
    `per_block` numbers, one more than it has threads."""

    def __init__(self, owners: LaneNumbers, epochs: LaneNumbers, per_block: int) -> None:
        self.owners, self.epochs, self.per_block = owners[:, None], epochs[:, None], per_block

    def are_others(self, numbers: LaneNumbers) -> npt.NDArray[np.bool_]:
        """Return where numbers are those of other threads."""
        are_others: npt.NDArray[np.bool_] = (numbers != NOBODY) & (numbers != self.owners)
        return are_others

    @property
    def whole_block(self) -> ThreadNumbers:
        """The last numbers instead of those of the threads."""
        return ThreadNumbers(self.block_numbers[:, 0], self.epochs[:, 0], self.per_block)

    @cached_property
    def block_numbers(self) -> LaneNumbers:
        """The last number of each thread's block, which stands for several of its threads."""
        return (self.owners // self.per_block + 1) * self.per_block - 1
