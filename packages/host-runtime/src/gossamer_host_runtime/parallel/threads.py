"""Choose the function that runs parallel regions: our own pool, that of libgomp, or threads for each region.

The pool and libgomp keep their threads between regions, so that a region costs 2 microseconds. `gomp` says
why libgomp is the second choice.
"""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from typing import TYPE_CHECKING

from gossamer_backend.plugin_api import MAX_THREADS, Parallelism, ParallelismSource, get_num_threads
from gossamer_host_runtime.parallel.gomp import gomp_parallel, is_gomp_loaded, usable_gomp
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_support.fork import compiling
from gossamer_support.typed_calls import typed

if TYPE_CHECKING:
    from gossamer_host_runtime.parallel.interruption import Interruption

PARALLEL_VARIABLE = "GOSSAMER_PARALLEL"
"""The environment variable for the choice: `pool` (the default), `gomp`, `pthread` or `none`. If one cannot
be used, another takes its place."""

_default_choice = "pool"

_CHOICES = ("pool", "gomp", "pthread", "none")


@typed
def parallelism_of(target: Target) -> ParallelismSource:
    """Return the function that a kernel calls before each run; the option `threads` fixes the number.

    `ArgumentError` (`threads.count`) if the option is not an integer from 1 to 4096.

    >>> parallelism_of(Target.parse("generic-cpu:threads=1"))()[:2]
    (1, None)
    """
    text = target.option("threads")
    if not text:
        return _current_parallelism
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MAX_THREADS:
        raise ArgumentError(
            "threads.count",
            f"The option threads of '{target.text}' is not an integer from 1 to {MAX_THREADS}.",
            hint=f"Give the number of threads, as in {target.backend}:threads=2.",
        )
    return partial(_parallelism_with, int(text))


def parallel_function() -> int | None:
    """Return the address of the function that now runs parallel regions in this process, or None."""
    choice = os.environ.get(PARALLEL_VARIABLE) or _default_choice
    if choice not in _CHOICES:
        raise ArgumentError(
            "host_runtime.parallel",
            f"The environment variable {PARALLEL_VARIABLE} is '{choice}'.",
            hint=f"Expected one of {', '.join(_CHOICES)}.",
        )
    if choice == "none":
        return None
    if choice == "pthread":
        return _fallback_parallel()
    libraries = (usable_gomp, _pool_parallel) if choice == "gomp" else (_pool_parallel, usable_gomp)
    return libraries[0]() or libraries[1]() or _fallback_parallel()


def share_openmp_threads() -> None:
    """Run parallel regions on the threads of libgomp from now on, if this process has loaded it, unless the
    user has chosen otherwise. For processes that alternate between kernels and a library with OpenMP.

    After a region, libgomp's threads spin for milliseconds. Workers of the pool cannot run on CPUs on which
    they spin, and a worker that is suspended there with a part of the work keeps its caller waiting.

    >>> share_openmp_threads()
    """
    global _default_choice
    if is_gomp_loaded():
        _default_choice = "gomp"
        refresh()


def _pool_parallel() -> int | None:
    from gossamer_host_runtime.parallel.pool import pool

    loaded = pool()
    return None if loaded is None else loaded.address


def _fallback_parallel() -> int | None:
    from gossamer_host_runtime.parallel.per_region import fallback_parallel

    return fallback_parallel()


def _current_parallelism() -> Parallelism:
    return _parallelism_with(get_num_threads())


# Each call of a kernel asks, and a cached function answers in half the time. `refresh` clears it.
@cache
def _parallelism_with(threads: int) -> Parallelism:
    if threads > 1:
        return threads, _parallel_function(), _interruption_address()
    return 1, None, _interruption_address()


@cache
def _parallel_function() -> int | None:
    with compiling:
        return parallel_function()


@cache
def _interruption_address() -> int | None:
    """Return the address of the function that long loops ask whether to stop, or None."""
    handler = _interruption()
    return None if handler is None else handler.address


def signal_exception() -> BaseException:
    """Return what a signal handler raised while a kernel ran, which has stopped for it."""
    handler = _interruption()
    return KeyboardInterrupt() if handler is None else handler.take_exception()


def _interruption() -> Interruption | None:
    from gossamer_host_runtime.parallel.interruption import interruption

    with compiling:
        return interruption()


def refresh() -> None:
    """Choose the function again, after the environment has changed."""
    _parallel_function.cache_clear()
    _parallelism_with.cache_clear()


def _before_fork() -> None:
    """Load our own function before the first fork, for all children, if libgomp and LLVM are loaded."""
    if gomp_parallel.cache_info().currsize and "llvmlite.binding" in sys.modules:
        _ = _pool_parallel() or _fallback_parallel()


if hasattr(os, "register_at_fork"):
    # In the child after the handler of `gomp`, which is imported above: the choice depends on it.
    os.register_at_fork(before=_before_fork, after_in_child=refresh)
