"""Measures the bounds of this machine: bytes per second by working set, operations per second.

The bound of a kernel is the longer of its bytes over the bandwidth at its working set and its
operations over the peak (Williams, Waterman, Patterson, "Roofline", 2009). A kernel that gathers
rows at random from memory cannot reach it; figures give the share that it reaches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from ctypes import c_double, c_int32, c_int64, c_void_p
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from benchmarks.machine.c_libraries import FAST, load_library
from benchmarks.machine.meter import is_disturbed, read_meter

ROOFS = Path(__file__).with_name("roofs")
"""The folder of the measuring loops in C."""
WORKING_SETS = tuple(2**exponent for exponent in range(16, 29, 2))
"""64 KiB to 256 MiB, over all threads."""
TRIES = 3
"""The number of measurements, until one is not disturbed."""
RUNS = 5
"""The number of runs, of which the shortest counts."""
READ_BYTES = 2**29
"""The bytes that one run reads at least, from a working set of any size."""
TRIAD_BYTES = 2**26
"""The size of each array of the triad."""
MULTIPLY_ADDS = 2**21
"""The length of a chain of multiply-adds."""


class ReadBandwidth(msgspec.Struct, frozen=True):
    """Gigabytes per second of repeated reads of a working set of `bytes`."""

    bytes: int
    gb_per_s: float


class Roofline(msgspec.Struct, frozen=True):
    """Measured with `threads` threads: reading, the triad from memory, and multiply-adds in
    registers by dtype."""

    threads: int
    read: tuple[ReadBandwidth, ...]
    triad_gb_per_s: float
    gflop_per_s: dict[str, float]
    is_disturbed: bool = False

    def gb_per_s(self, working_set: int) -> float:
        """Return the bandwidth for a working set, interpolated on a logarithmic scale.

        >>> roof = Roofline(1, (ReadBandwidth(1 << 16, 100.0), ReadBandwidth(1 << 18, 50.0)), 10.0, {})
        >>> roof.gb_per_s(1 << 10), roof.gb_per_s(1 << 17), roof.gb_per_s(1 << 30)
        (100.0, 75.0, 50.0)
        """
        sizes = [math.log2(point.bytes) for point in self.read]
        return float(
            np.interp(math.log2(max(working_set, 1)), sizes, [p.gb_per_s for p in self.read])
        )


def measure_roofline(threads: int) -> Roofline:
    """Measure for some seconds, and again if disturbed. Raises `CompilerError` without a C
    compiler."""
    for _ in range(TRIES):
        before = read_meter()
        roofline = roofline_now(threads)
        if not is_disturbed(before, read_meter()):
            return roofline
    return replace(roofline, is_disturbed=True)


def roofline_now(threads: int) -> Roofline:
    """Measure all bounds, each the best of several runs."""
    read = tuple(ReadBandwidth(size, read_gb_per_s(size, threads)) for size in WORKING_SETS)
    peaks = {dtype: gflop_per_s(threads, dtype) for dtype in ("float32", "float64")}
    return Roofline(threads, read, triad_gb_per_s(threads), peaks)


def best_seconds(call: Callable[[], object]) -> float:
    """Return the shortest of several runs after a warm-up, since noise only adds time."""
    call()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def read_gb_per_s(size: int, threads: int) -> float:
    """Measure reads of `size` bytes, repeated until `READ_BYTES` were read."""
    function = load_library(ROOFS, "float32", FAST).read_all
    function.restype = c_double
    array, times = np.ones(size // 4, dtype=np.float32), max(1, READ_BYTES // size)
    arguments = (c_int64(array.size), c_int64(times), c_int32(threads))
    call = partial(function, array.ctypes.data_as(c_void_p), *arguments)
    return size * times / best_seconds(call) / 1e9


def triad_gb_per_s(threads: int) -> float:
    """Measure a = b + 3 c over arrays; three streams are counted."""
    function = load_library(ROOFS, "float32", FAST).triad
    function.restype = None
    arrays = [np.ones(TRIAD_BYTES // 4, dtype=np.float32) for _ in range(3)]
    pointers = [array.ctypes.data_as(c_void_p) for array in arrays]
    call = partial(function, *pointers, c_int64(arrays[0].size), c_int32(threads))
    return 3 * TRIAD_BYTES / best_seconds(call) / 1e9


def gflop_per_s(threads: int, dtype: str) -> float:
    """Measure chains of multiply-adds in the widest registers."""
    library = load_library(ROOFS, dtype, FAST)
    library.multiply_add.restype = c_double
    operations = int(library.operations_per_time()) * MULTIPLY_ADDS * threads
    call = partial(library.multiply_add, c_int64(MULTIPLY_ADDS), c_int32(threads))
    return operations / best_seconds(call) / 1e9
