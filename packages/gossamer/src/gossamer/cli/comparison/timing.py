"""Timings of competitors in one run: warmed up, interleaved, medians."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeAlias

TimedCall: TypeAlias = Callable[[], object]

SETTLE_SECONDS = 0.002
"""A pause between two competitors, so that spinning threads of one do not slow down the other."""

SAMPLE_SECONDS = 0.01
"""The duration of a sample, which is the mean of the calls in this time."""


def interleave_calls(
    calls: Mapping[str, TimedCall], *, rounds: int, after_round: TimedCall = lambda: None
) -> dict[str, float]:
    """Return the median time of each call in milliseconds, over rounds that interleave the calls.

    >>> times = interleave_calls({"nothing": lambda: None}, rounds=3)
    >>> times["nothing"] < 1.0
    True
    """
    counts = {name: _calls_per_sample(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(SETTLE_SECONDS)
            samples[name].append(_sample(call, count=counts[name]))
        after_round()
    return {name: 1e3 * median(times) for name, times in samples.items()}


def _calls_per_sample(call: TimedCall) -> int:
    call()
    once = max(_sample(call, count=1), 1e-7)
    return max(1, min(10_000, int(SAMPLE_SECONDS / once)))


def _sample(call: TimedCall, *, count: int) -> float:
    # The caches hold what another contender has used.
    if count > 1:
        call()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count
