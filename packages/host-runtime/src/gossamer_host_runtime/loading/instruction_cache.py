"""The instruction cache of architectures on which it may hold what memory held before.

On x86-64, processors keep it up to date. On others, code that was just written is seen by data accesses
only, until its lines are cleaned to where instructions are fetched from, and invalidated there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from gossamer_host_runtime.detection.architecture import architecture


def synchronize_instructions(address: int, size: int) -> bool:
    """Let instructions be fetched as they are in memory; return whether that is possible."""
    if architecture() == "x86_64":
        return True
    clear = _flush_all_harts() if architecture() == "riscv64" else _clear_cache()
    return clear is not None and clear(address, address + size)


@cache
def _clear_cache() -> Callable[[int, int], bool] | None:
    """Return the function of GCC's runtime library with the instructions of this architecture."""
    try:
        function = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None

    def clear(start: int, end: int) -> bool:
        function(start, end)
        return True

    return clear


@cache
def _flush_all_harts() -> Callable[[int, int], bool] | None:
    """Return the function of the C library of RISC-V: the instruction `fence.i` concerns the core that runs
    it alone, so the system has a call."""
    try:
        function = ctypes.CDLL(None).__riscv_flush_icache
    except AttributeError:
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulong)

    def flush(start: int, end: int) -> bool:
        return bool(function(start, end, 0) == 0)

    return flush
