"""What this machine can do, measured: bytes per second by working set, operations per second.

The bound of a kernel is the longer of its bytes over the bandwidth at its working set and its
operations over the peak (Williams, Waterman, Patterson, "Roofline", 2009). A kernel that gathers
rows at random from memory cannot reach it; how near it comes is what the figure says.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
import numpy as np

from benchmarks import numba_loops
from benchmarks.problem import Work

WORKING_SETS = tuple(2**exponent for exponent in range(16, 29, 2))
"""64 KiB to 256 MiB, over all threads."""


class Bandwidth(msgspec.Struct, frozen=True):
    """Gigabytes per second when a working set of `bytes` is read again and again."""

    bytes: int
    gb_per_s: float


class Roofline(msgspec.Struct, frozen=True):
    """Measured with `threads` threads: reading, the triad from memory, float32 products."""

    threads: int
    read: tuple[Bandwidth, ...]
    triad_gb_per_s: float
    gflop_per_s: float

    def gb_per_s(self, working_set: int) -> float:
        """Interpolated between the measured working sets, on their logarithms.

        >>> roof = Roofline(1, (Bandwidth(1 << 16, 100.0), Bandwidth(1 << 18, 50.0)), 10.0, 99.0)
        >>> roof.gb_per_s(1 << 10), roof.gb_per_s(1 << 17), roof.gb_per_s(1 << 30)
        (100.0, 75.0, 50.0)
        """
        at = [math.log2(point.bytes) for point in self.read]
        return float(np.interp(math.log2(max(working_set, 1)), at, [p.gb_per_s for p in self.read]))

    def bound_seconds(self, work: Work) -> float:
        """The shortest time in which this machine can do `work`."""
        by_memory = work.bytes / (1e9 * self.gb_per_s(work.bytes))
        return max(by_memory, work.operations / (1e9 * self.gflop_per_s))


def measure_roofline(threads: int) -> Roofline:
    """Some seconds of measuring; ImportError without Numba or threadpoolctl."""
    numba_loops.set_threads(threads)
    read = tuple(Bandwidth(size, read_gb_per_s(size, threads)) for size in WORKING_SETS)
    return Roofline(threads, read, triad_gb_per_s(), gflop_per_s(threads))


def best_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of some runs after a warm one: noise only ever adds."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def read_gb_per_s(size: int, threads: int) -> float:
    """Reading `size` bytes, as often as gives a measurable time."""
    array = np.ones(size // 4, dtype=np.float32)
    times, sums = max(1, 2**29 // size), np.zeros(threads, dtype=np.float32)
    seconds = best_seconds(partial(numba_loops.read_loop(), array, times, sums))
    return size * times / seconds / 1e9


def triad_gb_per_s(size: int = 2**26) -> float:
    """a = b + 3 c over arrays of `size` bytes, three streams counted."""
    arrays = [np.ones(size // 4, dtype=np.float32) for _ in range(3)]
    return 3 * size / best_seconds(partial(numba_loops.triad_loop(), *arrays)) / 1e9


def gflop_per_s(threads: int, size: int = 1536) -> float:
    """The float32 matrix product of NumPy's BLAS: what dense code reaches here."""
    left, right = (np.ones((size, size), dtype=np.float32) for _ in range(2))
    result = np.empty((size, size), dtype=np.float32)
    with blas_threads(threads):
        return 2 * size**3 / best_seconds(partial(np.matmul, left, right, out=result)) / 1e9


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """NumPy's BLAS with so many threads."""
    import threadpoolctl

    with threadpoolctl.threadpool_limits(limits=threads, user_api="blas"):
        yield
