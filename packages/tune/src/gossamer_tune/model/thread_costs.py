"""Costs that threads share: the work, the time to start them, and copies that others have made."""

from __future__ import annotations

from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.workload import Workload

LAUNCH_CYCLES = PerCpu(14_000.0, 19_000.0)
"""Cycles to start threads and to wait for the last one (fitted to products with vectors on Emerald Rapids, in
29 matrices and all their formats; loops without work take 2 to 3 microseconds, about half of that)."""

SHARED_COPY_CYCLES = PerCpu(30.0, 73.0, 40.0)
"""Cycles by which a vector of a copy is late that another core has written (fitted to products of pruned
weights and of finite elements on two threads of Emerald Rapids: 12 to 20 cycles of a call for a vector of the
copy, half of which is written by the other one). On Zen 3, 20 to 60 choose equally well; with 73, blocks of
16 are taken as blocks of 2 on two threads, which take 1.25 times as long as blocks of 8."""


def on_threads(
    work: float, workload: Workload, *, launches: int = 1, shared_vectors: float = 0.0
) -> float:
    """Return the cycles of a call for work that threads divide equally, with this many parallel loops. Each
    thread reads `shared_vectors` of a copy that all threads have made together.

    >>> from gossamer_tune.model.workload import Workload
    >>> [on_threads(1e6, Workload(features=64, threads=threads)) for threads in (1, 2)]
    [1000000.0, 519000.0]
    """
    threads = workload.threads
    if threads == 1:
        return work
    others = shared_vectors * (1 - 1 / threads) * SHARED_COPY_CYCLES.on(workload.machine)
    return work / threads + others + launches * LAUNCH_CYCLES.on(workload.machine)
