"""New arrays for results, in one block of memory.

The first access to each page of new memory takes a page fault of 0.25 to 1.5 microseconds, as long as
storing the 500 elements of the page. Huge pages of 2 MB need few faults. The arrays of a tensor are often
smaller than one huge page, but together they are not.
"""

from __future__ import annotations

import contextlib
import mmap
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.memory.available_memory import require_memory
from gossamer_formats.value_dtypes import value_array_dtype
from gossamer_support.arrays import Array

HUGE_PAGE = 2 << 20
MIN_BLOCK = 1 << 20
"""The least number of bytes for a block: the system call takes as long as faults for less."""

ALIGNMENT = 64


class ArrayKind(NamedTuple):
    """The dtype of an array, and whether it has to be zero."""

    dtype: str
    is_zero: bool


def new_arrays(kinds: tuple[ArrayKind, ...], *sizes: int) -> list[Array]:
    """Return arrays of some kinds and sizes, which share one block of memory if they are large together.

    A block is freed after all of its arrays. Those that were freed last are used again. Raises `MemoryError`.

    >>> first, second = new_arrays((ArrayKind("int32", False), ArrayKind("float64", True)), 2, 1)
    >>> first.shape, second
    ((2,), array([0.]))
    """
    dtypes, makers, itemsizes = _makers(kinds)
    total = sum(map(mul, itemsizes, sizes))
    require_memory(total)
    block = _block(total + len(sizes) * ALIGNMENT) if total >= MIN_BLOCK else None
    if block is None:
        return [make(size, dtype) for make, size, dtype in zip(makers, sizes, dtypes, strict=True)]
    (memory, are_zero), arrays, start = block, [], 0
    for (_, is_zero), dtype, size in zip(kinds, dtypes, sizes, strict=True):
        end = start + size * dtype.itemsize
        arrays.append(memory[start:end].view(dtype))
        if is_zero and not are_zero:
            arrays[-1].fill(0)
        start = -(-end // ALIGNMENT) * ALIGNMENT
    return arrays


def without_end(array: Array, count: int) -> Array:
    """Return the first elements of a new array, and give the memory of the others back.

    The caller must not have another reference to the array.

    >>> without_end(np.arange(5), 2)
    array([0, 1])
    """
    if array.base is None:
        array.resize(count, refcheck=False)
        return array
    # The end of a block was not written to, so that there is nothing to give back.
    return array[:count]


class _Makers(NamedTuple):
    """The dtypes of some arrays, the functions that make them, and the numbers of bytes of an element."""

    dtypes: list[Any]
    functions: Sequence[Callable[..., Array]]
    itemsizes: list[int]


@cache
def _makers(kinds: tuple[ArrayKind, ...]) -> _Makers:
    """Return what makes small arrays of some kinds: found once, as it takes as long as making them."""
    dtypes = [value_array_dtype(dtype) for dtype, _ in kinds]
    functions = [np.zeros if is_zero else np.empty for _, is_zero in kinds]
    return _Makers(dtypes, functions, [dtype.itemsize for dtype in dtypes])


class _MemoryBlock(NamedTuple):
    """Memory of which the first `size` bytes after `start` begin at a huge page."""

    memory: mmap.mmap
    start: int
    size: int


MAX_KEPT = 64 << 20
"""The most bytes of freed blocks that are kept for the next arrays. The GNU C library keeps as much."""

_kept: list[_MemoryBlock] = []


def _block(size: int) -> tuple[Array, bool] | None:
    """Return memory in huge pages, and whether it is zero; None if there are none, or if it does not pay."""
    if size < MIN_BLOCK or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    kept = _kept_block(size)
    block = _new_block(size) if kept is None else kept
    array = np.frombuffer(block.memory, np.uint8, size, block.start)
    # The finalizer has the only other reference to the memory.
    weakref.finalize(array, _keep, block).atexit = False
    return array, kept is None


def _new_block(size: int) -> _MemoryBlock:
    # The last huge page only if at least half of it is needed.
    pages = (size + HUGE_PAGE // 2) // HUGE_PAGE
    size = max(size, pages * HUGE_PAGE)
    memory = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = -np.frombuffer(memory, np.uint8).ctypes.data % HUGE_PAGE
    if pages:
        memory.madvise(mmap.MADV_HUGEPAGE, start, pages * HUGE_PAGE)
    return _MemoryBlock(memory, start, size)


def _kept_block(size: int) -> _MemoryBlock | None:
    """Return a block that was freed, of at most twice the size."""
    # The last one first: its lines may still be in a cache.
    for block in reversed(list(_kept)):
        if size <= block.size <= 2 * size + HUGE_PAGE:
            # Another thread may have taken it.
            with contextlib.suppress(ValueError):
                _kept.remove(block)
                return block
    return None


def _keep(block: _MemoryBlock) -> None:
    """Keep a freed block, instead of the oldest ones."""
    # A finalizer may run at any time, also within this function: no lock, and each step is atomic.
    _kept.append(block)
    while sum(one.size for one in list(_kept)) > MAX_KEPT:
        with contextlib.suppress(IndexError):
            _kept.pop(0)
