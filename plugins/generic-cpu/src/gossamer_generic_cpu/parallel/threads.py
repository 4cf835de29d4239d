"""Choose the function that runs parallel regions: our own pool, that of libgomp, or threads for each region.

The pool and libgomp keep their threads between regions, so that a region costs 2 microseconds. But libgomp
waits for threads that are not scheduled, ends the process if a thread cannot be started, and after a fork
blocks in the child, waiting for threads that only the parent has.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

from gossamer_backend.plugin_api import (
    MAX_THREADS,
    Parallelism,
    ParallelismSource,
    compiling,
    get_num_threads,
)
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target

if TYPE_CHECKING:
    from gossamer_generic_cpu.parallel.interruption import Interruption

PARALLEL_VARIABLE = "GOSSAMER_PARALLEL"
"""The environment variable for the choice: `pool` (the default), `gomp`, `pthread` or `none`. If one cannot
be used, another takes its place."""

_CHOICES = ("pool", "gomp", "pthread", "none")
INITIAL_SPIN_COUNT = "100000"
"""About 0.1 milliseconds: the threads are still awake for a region that follows immediately."""

_SPIN_COUNT = "GOMP_SPINCOUNT"
_WAITING = (_SPIN_COUNT, "OMP_WAIT_POLICY")
"""The variables by which users choose how libgomp's threads wait."""

_LIBRARIES = ("libgomp.so.1", "libgomp.1.dylib")

_FORKED_WITHOUT_EXEC = 0x40
"""PF_FORKNOEXEC of Linux, in the flags of `/proc/self/stat`."""


def parallelism_of(target: Target) -> ParallelismSource:
    """Return the function that a kernel calls before each run; the option `threads` fixes the number.

    `ArgumentError` (`threads.count`) if the option is not an integer from 1 to 4096.
    """
    text = target.option("threads")
    if not text:
        return _current_parallelism
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MAX_THREADS:
        raise ArgumentError(
            "threads.count",
            f"The option threads of '{target.text}' is not an integer from 1 to {MAX_THREADS}.",
            hint="Give the number of threads, as in generic-cpu:threads=2.",
        )
    return partial(_parallelism_with, int(text))


def parallel_function() -> int | None:
    """Return the address of the function that now runs parallel regions in this process, or None."""
    choice = os.environ.get(PARALLEL_VARIABLE) or "pool"
    if choice not in _CHOICES:
        raise ArgumentError(
            "generic_cpu.parallel",
            f"The environment variable {PARALLEL_VARIABLE} is '{choice}'.",
            hint=f"Expected one of {', '.join(_CHOICES)}.",
        )
    if choice == "none":
        return None
    if choice == "pthread":
        return _fallback_parallel()
    libraries = (
        (_usable_gomp, _pool_parallel) if choice == "gomp" else (_pool_parallel, _usable_gomp)
    )
    return libraries[0]() or libraries[1]() or _fallback_parallel()


def _pool_parallel() -> int | None:
    from gossamer_generic_cpu.parallel.pool import pool

    loaded = pool()
    return None if loaded is None else loaded.address


def _usable_gomp() -> int | None:
    return None if _is_lost else gomp_parallel()


def _fallback_parallel() -> int | None:
    from gossamer_generic_cpu.parallel.per_region import fallback_parallel

    return fallback_parallel()


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
    if any(name in os.environ for name in _WAITING) or _is_gomp_loaded():
        yield
        return
    os.environ[_SPIN_COUNT] = INITIAL_SPIN_COUNT
    try:
        yield
    finally:
        # Another thread of the user's may have set it since: that value stays.
        if os.environ.get(_SPIN_COUNT) == INITIAL_SPIN_COUNT:
            del os.environ[_SPIN_COUNT]


def _current_parallelism() -> Parallelism:
    return _parallelism_with(get_num_threads())


# Each call of a kernel asks, and a cached function answers in half the time. `refresh` clears it.
@cache
def _parallelism_with(threads: int) -> Parallelism:
    if threads > 1:
        return threads, _parallel_function(), _ask_function()
    return 1, None, _ask_function()


@cache
def _parallel_function() -> int | None:
    with compiling:
        return parallel_function()


@cache
def _ask_function() -> int | None:
    """Return the address of the function that long loops ask whether to stop, or None."""
    found = _interruption()
    return None if found is None else found.address


def raised_by_signal() -> BaseException:
    """Return what a signal handler raised while a kernel ran, which has stopped for it."""
    found = _interruption()
    return KeyboardInterrupt() if found is None else found.raised()


def _interruption() -> Interruption | None:
    # A child that is forked during the import would wait for it forever.
    with compiling:
        from gossamer_generic_cpu.parallel.interruption import interruption

        return interruption()


def refresh() -> None:
    """Choose the function again, after the environment has changed."""
    _parallel_function.cache_clear()
    _parallelism_with.cache_clear()


def _is_gomp_loaded() -> bool:
    """Return whether libgomp is loaded in this process."""
    for name in _LIBRARIES:
        # RTLD_NOLOAD: only looks whether the library is there, without loading it.
        with contextlib.suppress(OSError):
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            return True
    return False


def _is_forked() -> bool:
    """Return whether this process was forked without exec; False if the system has no /proc."""
    try:
        with open("/proc/self/stat", "rb") as file:
            # After the last parenthesis: the name of the command, in parentheses, may contain spaces and
            # ")".
            flags = file.read().rpartition(b")")[2].split()[6]
    except (OSError, IndexError):
        return False
    return bool(int(flags) & _FORKED_WITHOUT_EXEC)


_is_lost = _is_forked() and _is_gomp_loaded()
"""True if libgomp was already loaded before this process was forked; its threads do not exist here, and it
would deadlock."""


def _before_fork() -> None:
    """Load our own function before the first fork, for all children, if libgomp and LLVM are loaded."""
    if gomp_parallel.cache_info().currsize and "llvmlite.binding" in sys.modules:
        _ = _pool_parallel() or _fallback_parallel()


def _after_fork_in_child() -> None:
    global _is_lost
    # Remembered for grandchildren, too, which find the library loaded just as well.
    _is_lost = _is_lost or _is_gomp_loaded()
    refresh()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
