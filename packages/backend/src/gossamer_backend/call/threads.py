"""The number of threads that kernels use, a setting of the process."""

from __future__ import annotations

import os
from numbers import Integral

from gossamer_ir.errors import ArgumentError

VARIABLE = "GOSSAMER_NUM_THREADS"
LIMIT = 4096

# Each assignment is atomic, so no lock is needed (a lock could be held while another thread forks).
# The value that was set is kept apart from the default, which is computed on first use.
_chosen: int | None = None
_default: int | None = None


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
    if not is_integer or not 1 <= count <= LIMIT:
        raise _refused(repr(count), source="The number of threads")
    _chosen = int(count)


def get_num_threads() -> int:
    """Return the number that was set, else GOSSAMER_NUM_THREADS, else the number of CPUs of this process.

    `ArgumentError` (`threads.count`) if the variable is not an integer from 1 to 4096.

    >>> set_num_threads(3)
    >>> get_num_threads()
    3
    >>> reset_num_threads()
    """
    global _default
    count = _chosen or _default
    if count is None:
        count = _default = _find_default()
    return count


def reset_num_threads() -> None:
    """Discard the number that was set, so that the environment is read again."""
    global _chosen, _default
    _chosen = _default = None


def _find_default() -> int:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return available_cpus()
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= LIMIT:
        raise _refused(repr(text), source=f"The environment variable {VARIABLE}")
    return int(text)


def available_cpus() -> int:
    """Return the number of CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _refused(value: str, *, source: str) -> ArgumentError:
    return ArgumentError(
        "threads.count",
        f"{source} is {value}, which is not an integer from 1 to {LIMIT}.",
        hint="Give the number of threads, such as 2.",
    )
