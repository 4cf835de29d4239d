"""The state of threads, which their instructions read and change."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from gossamer_cuda_mma_sp.interpreter.async_copies import AsyncCopies
from gossamer_cuda_mma_sp.interpreter.async_products import AsyncProducts
from gossamer_cuda_mma_sp.interpreter.thread_memory import ThreadMemory
from gossamer_cuda_mma_sp.interpreter.thread_registers import ThreadRegisters


class GridThreads(msgspec.Struct, frozen=True):
    """The threads of some blocks, `block_threads` in each, and the kernel's arguments by its parameters."""

    registers: ThreadRegisters
    memory: ThreadMemory
    copies: AsyncCopies
    products: AsyncProducts
    arguments: Mapping[str, int | float]
    block_threads: int


@lru_cache(1024)
def items_of(operand: str) -> tuple[str, ...]:
    """Return the registers of an operand, which may be a list of several.

    >>> items_of("{%r1, %r2}"), items_of("%r1")
    (('%r1', '%r2'), ('%r1',))
    """
    return tuple([item.strip() for item in operand.strip("{}").split(",")])
