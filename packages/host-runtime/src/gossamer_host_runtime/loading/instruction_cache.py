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
    clear = _clear_cache()
    if clear is None:
        return False
    clear(address, address + size)
    return True


@cache
def _clear_cache() -> Callable[[int, int], None] | None:
    """Return the function of GCC's runtime library with the instructions of this architecture."""
    try:
        function = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None

    def clear(start: int, end: int) -> None:
        function(start, end)

    return clear
