"""libgomp, which runs parallel regions if the user chooses it, if the pool is not supported, or if kernels
share the threads of another library.

It waits for threads that are not scheduled, ends the process if a thread cannot be started, and after a fork
blocks in the child, waiting for threads that only the parent has.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from functools import cache

from gossamer_support.fork import compiling

INITIAL_SPIN_COUNT = "100000"
"""About 0.1 milliseconds: the threads are still awake for a region that follows immediately."""

_SPIN_COUNT = "GOMP_SPINCOUNT"
_WAITING = (_SPIN_COUNT, "OMP_WAIT_POLICY")
"""The variables by which users choose how libgomp's threads wait."""

_LIBRARIES = ("libgomp.so.1", "libgomp.1.dylib")

_FORKED_WITHOUT_EXEC = 0x40
"""PF_FORKNOEXEC of Linux, in the flags of `/proc/self/stat`."""


def usable_gomp() -> int | None:
    """Return the address of GOMP_parallel, or None if libgomp is not installed or would deadlock."""
    return None if _is_lost else gomp_parallel()


@cache
def gomp_parallel() -> int | None:
    """Return the address of GOMP_parallel, or None if libgomp is not installed."""
    with compiling, _short_spinning():
        for name in _LIBRARIES:
            try:
                function = ctypes.CDLL(name).GOMP_parallel
            except (OSError, AttributeError):
                continue
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@contextlib.contextmanager
def _short_spinning() -> Iterator[None]:
    """Set `GOMP_SPINCOUNT` while libgomp is loaded, unless the user has chosen how threads wait.

    By default, libgomp's waiting threads spin for milliseconds. They take the CPU from the thread they
    wait for as soon as another process is busy: a region of 20 microseconds took 8 milliseconds.
    libgomp has no function for this setting. It reads the variable once, when it is loaded, so the
    variable is removed directly afterward, and is not set at all if libgomp is loaded already.
    `compiling` is held meanwhile, so that no child is forked with it.
    """
    # The user's choice counts; and a loaded libgomp has read its variables already.
    if any(name in os.environ for name in _WAITING) or is_gomp_loaded():
        yield
        return
    os.environ[_SPIN_COUNT] = INITIAL_SPIN_COUNT
    try:
        yield
    finally:
        # Another thread of the user's may have set it since: that value stays.
        if os.environ.get(_SPIN_COUNT) == INITIAL_SPIN_COUNT:
            del os.environ[_SPIN_COUNT]


def is_gomp_loaded() -> bool:
    """Return whether libgomp is loaded in this process."""
    # Only looks whether the library is there, without loading it. Windows has no such mode; programs there
    # have other libraries of OpenMP than libgomp.
    mode: int | None = getattr(os, "RTLD_NOLOAD", None)
    if mode is None:
        return False
    for name in _LIBRARIES:
        with contextlib.suppress(OSError):
            ctypes.CDLL(name, mode=mode | os.RTLD_LAZY)
            return True
    return False


def _is_forked() -> bool:
    """Return whether this process was forked without exec; False if the system has no /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # After the last parenthesis: the name of the command, in parentheses,
            # may contain spaces and ")".
            flags = file.read().rpartition(b")")[2].split()[6]
    except (OSError, IndexError):
        return False
    return bool(int(flags) & _FORKED_WITHOUT_EXEC)


_is_lost = _is_forked() and is_gomp_loaded()
"""True if libgomp was already loaded before this process was forked; its threads do not exist here, and it
would deadlock."""


def _after_fork_in_child() -> None:
    global _is_lost
    # Remembered for grandchildren, too, which find the library loaded just as well.
    _is_lost = _is_lost or is_gomp_loaded()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
