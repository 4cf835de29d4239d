"""Memory from the operating system in whole pages, which Python's `mmap` objects cannot make executable or
leave mapped until the process ends."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache

from gossamer_host_runtime.loading.instruction_cache import synchronize_instructions


@cache
def _library() -> ctypes.CDLL:
    """Return the C library, with the types of the functions that are called here."""
    library = ctypes.CDLL(None)
    number, pointer, size = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t
    library.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_int64)
    library.mmap.restype = pointer
    library.mprotect.argtypes = (pointer, size, number)
    library.madvise.argtypes = (pointer, size, number)
    library.munmap.argtypes = (pointer, size)
    return library


def map_memory(size: int) -> int | None:
    """Return the address of `size` bytes of writable zeros, or None if the system refuses.

    The memory is private: a forked child gets a copy, so that it cannot change what its parent sees.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    access = mmap.PROT_READ | mmap.PROT_WRITE
    # mmap refuses a size of 0.
    address = _library().mmap(None, max(size, 1), access, flags, -1, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        return None
    return int(address)


def unmap_memory(address: int, size: int) -> None:
    """Give back memory of `map_memory`."""
    _library().munmap(address, max(size, 1))


def make_executable(address: int, size: int) -> bool:
    """Make memory executable and read-only; return whether the system allows it."""
    access = mmap.PROT_READ | mmap.PROT_EXEC
    is_allowed = bool(_library().mprotect(address, max(size, 1), access) == 0)
    return is_allowed and synchronize_instructions(address, size)


def advise(address: int, size: int, advice: int) -> bool:
    """Tell the system how memory is used (`madvise`); return whether it accepts that."""
    return bool(_library().madvise(address, size, advice) == 0)
