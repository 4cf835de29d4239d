"""The number of threads that kernels use, a setting of the process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import ceil
from numbers import Integral
from pathlib import Path

from gossamer_ir.errors import ArgumentError
from gossamer_support.cgroups import CGROUPS, PROC, control_groups, read_text
from gossamer_support.typed_calls import typed

NUM_THREADS_VARIABLE = "GOSSAMER_NUM_THREADS"
OPENMP_VARIABLE = "OMP_NUM_THREADS"
"""A number, or a list of numbers for nested regions, of which the first counts."""

# Also the limit in the code of the parallel regions, whose counters have 12 bits for the threads
# that may still enter. No machine of today has as many CPUs.
MAX_THREADS = 4096

# Each assignment is atomic, so no lock is needed (a lock could be held while another thread forks).
# The value that was set is kept apart from the default, which is computed on first use.
_chosen: int | None = None
_default: int | Callable[[], int] | None = None
_followed: Callable[[], int] | None = None
"""Returns the number of threads of a library with which kernels share its threads."""


def set_num_threads(count: int) -> None:
    """Set the number of threads of all later calls.

    `ArgumentError` (`threads.count`) if `count` is not an integer from 1 to 4096.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> reset_num_threads()
    """
    global _chosen
    is_integer = isinstance(count, Integral) and not isinstance(count, bool)
    if not is_integer or not 1 <= count <= MAX_THREADS:
        raise _argument_error(repr(count), source="The number of threads")
    _chosen = int(count)


def get_num_threads() -> int:
    """Return the number that was set, else GOSSAMER_NUM_THREADS, else that of a library that
    `follow_num_threads` names, else OMP_NUM_THREADS, else the number of CPUs that this process may use.

    `ArgumentError` (`threads.count`) if GOSSAMER_NUM_THREADS is not an integer from 1 to 4096.

    >>> set_num_threads(3)
    >>> get_num_threads()
    3
    >>> reset_num_threads()
    """
    global _default
    count = _chosen or _default
    if count is None:
        count = _default = _find_default()
    return count if isinstance(count, int) else max(1, min(count(), MAX_THREADS))


@typed
def follow_num_threads(source: Callable[[], int]) -> None:
    """Use as many threads as a library, which `source` returns at each call, unless the user has chosen a
    number for kernels. OpenMP ends and starts threads when regions of different sizes alternate.

    >>> reset_num_threads()
    >>> follow_num_threads(lambda: 3)
    >>> get_num_threads() == int(os.environ.get("GOSSAMER_NUM_THREADS") or 3)
    True
    >>> follow_num_threads(available_cpus)
    """
    global _default, _followed
    # Here, and not at the first call of a kernel, an error is that of the caller.
    source()
    _default, _followed = None, source


def reset_num_threads() -> None:
    """Discard the number that was set, so that the environment is read again."""
    global _chosen, _default
    _chosen = _default = None


def _find_default() -> int | Callable[[], int]:
    text = os.environ.get(NUM_THREADS_VARIABLE, "").strip()
    if not text:
        return _followed or _openmp_number() or available_cpus()
    count = _thread_count(text)
    if count is None:
        raise _argument_error(repr(text), source=f"The environment variable {NUM_THREADS_VARIABLE}")
    return count


def _openmp_number() -> int | None:
    """Return the first number of OMP_NUM_THREADS; None if it is missing, or anything but a number from 1 to
    4096: the variable is for other libraries, too."""
    return _thread_count(os.environ.get(OPENMP_VARIABLE, "").partition(",")[0].strip())


def _thread_count(text: str) -> int | None:
    # isdigit() is true for digits such as '²', which int() refuses.
    is_number = text.isascii() and text.isdigit() and len(text) < 100
    return int(text) if is_number and 1 <= int(text) <= MAX_THREADS else None


def available_cpus() -> int:
    """Return how many CPUs this process may use: those that it may run on, or, rounded up, the quota of its
    cgroup if that is less."""
    return max(1, min([_runnable_cpus(), *(ceil(quota) for quota in cpu_quotas())]))


def _runnable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        # The affinity mask, not the number of CPUs: taskset and containers restrict it.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_quotas(*, proc: Path = PROC, cgroups: Path = CGROUPS) -> Iterator[float]:
    """Yield the CPU quotas of this process in CPUs, of its cgroups (v1 and v2) and all their ancestors.

    Source: Linux documentation, admin-guide/cgroup-v2, `cpu.max`, and scheduler/sched-bwc.
    """
    for group in control_groups("cpu", proc=proc, cgroups=cgroups):
        yield from _quota_of(group.path)


def _quota_of(group: Path) -> Iterator[float]:
    words = read_text(group / "cpu.max").split()  # v2: "100000 100000" or "max 100000"
    if not words:
        words = [read_text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    # v1: a quota of -1 is none
    if len(words) == 2 and all(word.isascii() and word.isdigit() for word in words):
        quota, period = map(int, words)
        if quota > 0 and period > 0:
            yield quota / period


def _argument_error(value: str, *, source: str) -> ArgumentError:
    return ArgumentError(
        "threads.count",
        f"{source} is {value}, which is not an integer from 1 to {MAX_THREADS}.",
        hint="Give the number of threads, such as 2.",
    )
