"""The share of the processors that other processes used during a measurement.

A benchmark beside a busy process silently measures that process. The kernel counts the busy time of
all processors in `/proc/stat`; time that is not ours is foreign, including time stolen by the host.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

CpuClock: TypeAlias = Callable[[], float]
"""Returns the CPU seconds of one of our processes, like `time.process_time` for this one."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
FOREIGN_LIMIT = 0.08
RESOLUTION_SECONDS = 0.03
"""Ticks are coarse: less foreign time than this may be rounding."""


class Reading(msgspec.Struct, frozen=True):
    """Counters in seconds: elapsed, busy time of all processors, stolen time, our CPU time."""

    wall: float
    busy: float
    stolen: float
    own: float


def parse_stat(line: str) -> tuple[float, float]:
    """Return busy and stolen seconds from the first line of `/proc/stat`.

    >>> ticks = [10, 0, 5, 90, 1, 2, 3, 4]
    >>> busy, stolen = parse_stat("cpu " + " ".join(str(t * TICKS_PER_SECOND) for t in ticks))
    >>> (busy, stolen)
    (20.0, 4.0)
    """
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, line.split()[1:9])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND, stolen / TICKS_PER_SECOND


def parse_process(text: str) -> float:
    """Return the CPU seconds of all threads from `/proc/PID/stat`; the name may contain anything.

    >>> parse_process(f"7 (a) b) R {'0 ' * 10}{TICKS_PER_SECOND} {TICKS_PER_SECOND} 0 0")
    2.0
    """
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def cpu_seconds_of(process: int) -> float:
    """Return the CPU seconds of another process; 0 without `/proc`."""
    path = Path(f"/proc/{process}/stat")
    return parse_process(path.read_text()) if path.exists() else 0.0


def read_meter(clocks: Sequence[CpuClock] = (time.process_time,)) -> Reading:
    """Return the current counters; `clocks` are those of our processes. Without `/proc/stat` foreign
    work is not detected."""
    our_seconds = sum(clock() for clock in clocks)
    path = Path("/proc/stat")
    busy, stolen = (
        parse_stat(path.read_text().partition("\n")[0]) if path.exists() else (our_seconds, 0.0)
    )
    return Reading(time.perf_counter(), busy, stolen, our_seconds)


def foreign_share(before: Reading, after: Reading) -> float:
    """Return the processors that others used between two readings (1.0: one processor).

    >>> foreign_share(Reading(0, 0, 0, 0), Reading(2.0, 4.0, 0.0, 3.0))
    0.5
    >>> foreign_share(Reading(0, 0, 0, 0), Reading(2.0, 3.02, 0.0, 3.0))  # below the resolution
    0.0
    """
    foreign = (after.busy - before.busy) - (after.own - before.own)
    foreign += after.stolen - before.stolen
    if foreign < RESOLUTION_SECONDS:
        return 0.0
    return foreign / max(after.wall - before.wall, 1e-9)


def is_disturbed(before: Reading, after: Reading) -> bool:
    """Return whether others used more than `FOREIGN_LIMIT` of a processor between two readings."""
    return foreign_share(before, after) > FOREIGN_LIMIT
