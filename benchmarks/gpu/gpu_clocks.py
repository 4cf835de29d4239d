"""Times of single calls on a GPU, by events, with nothing of the arrays in its second-level cache.

Workers of other libraries import this module, so it needs none of gossamer when it is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

GpuClock: TypeAlias = Callable[[Callable[[], object]], float]
"""Makes a call and returns its seconds."""

FLUSHED = 2
"""The bytes that are written before a call, as a multiple of the size of the cache."""
USUAL_CACHE = 64 << 20
"""Bytes that are flushed if the size of the cache is not known."""


def host_clock(call: Callable[[], object]) -> float:
    """Return the seconds of a call that returns when it is done.

    >>> host_clock(lambda: None) < 1
    True
    """
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def driver_clock(gpu: Any) -> GpuClock:
    """Return the clock of a `GpuDevice` of gossamer."""
    size = FLUSHED * (gpu.limits.cache_bytes or USUAL_CACHE)
    with gpu.calling("The clock"):
        buffer = gpu.allocate(size, stream=0, what="The flushed buffer")

    def seconds(call: Callable[[], object]) -> float:
        with gpu.calling("The clock"):
            gpu.driver.clear(buffer.address, size, stream=0)
            start = gpu.driver.record(0)
        call()
        with gpu.calling("The clock"):
            return float(gpu.driver.seconds_between(start, gpu.driver.record(0)))

    return seconds


def torch_clock(torch: Any) -> GpuClock:
    """Return the clock of PyTorch."""
    properties = torch.cuda.get_device_properties(0)
    size = FLUSHED * (getattr(properties, "L2_cache_size", 0) or USUAL_CACHE)
    buffer = torch.empty(size, dtype=torch.int8, device="cuda")

    def seconds(call: Callable[[], object]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        buffer.zero_()
        start.record()
        call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    return seconds


def cupy_clock(cupy: Any) -> GpuClock:
    """Return the clock of CuPy."""
    size = FLUSHED * (cupy.cuda.Device(0).attributes.get("L2CacheSize", 0) or USUAL_CACHE)
    buffer = cupy.empty(size, cupy.int8)

    def seconds(call: Callable[[], object]) -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        buffer.fill(0)
        start.record()
        call()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / 1e3

    return seconds
