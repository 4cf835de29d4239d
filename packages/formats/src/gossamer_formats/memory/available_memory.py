"""The memory that this process may allocate."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from gossamer_support.cgroups import CGROUPS, PROC, control_groups, read_text

_LITTLE = 16 << 20
"""Bytes below which the available memory is not looked up: it is in a dozen files of the system, and reading
these takes longer than filling a small array."""


def fits_in_memory(nbytes: int) -> bool:
    """Return whether this process can allocate so many bytes.

    >>> fits_in_memory(1000), fits_in_memory(2**62)
    (True, False)
    """
    return nbytes <= _LITTLE or nbytes <= available_memory()


def require_memory(nbytes: int) -> None:
    """Raise `MemoryError` if this process cannot allocate so many bytes.

    Linux grants more memory than it has, and ends the process that writes to it.

    >>> require_memory(2**62)
    Traceback (most recent call last):
    ...
    MemoryError: 4611686018427387904 bytes are needed
    """
    if not fits_in_memory(nbytes):
        raise MemoryError(f"{nbytes} bytes are needed")


def available_memory(*, proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Return how many bytes this process can allocate: the least of what the machine, the cgroups (v1 and v2)
    and the limit of the address space (`RLIMIT_AS`) leave.

    Where `/proc` is missing, as on macOS, this is the size of physical memory or `RLIMIT_AS`.

    >>> 1_000 < available_memory() < 2**63
    True
    """
    return max(
        0, min((*_machine_memory(proc), *_address_space(proc), *_cgroup_memory(proc, cgroups)))
    )


def _machine_memory(proc: Path) -> Iterator[int]:
    yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _address_space(proc: Path) -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = " ".join(_lines(proc / "self" / "statm")).split()[:1]
        yield limit - sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE")


def _cgroup_memory(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield what each limited cgroup of this process leaves."""
    for group in control_groups("memory", proc=proc, cgroups=cgroups):
        if group.is_v2:
            yield from _remaining_memory(
                group.path, "memory.max", "memory.current", "inactive_file"
            )
        else:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _remaining_memory(group.path, *names)


def _remaining_memory(group: Path, limit: str, usage: str, cached: str) -> Iterator[int]:
    """Yield what a cgroup leaves: its limit, less its usage without the page cache that can be dropped."""
    most, used = _lines(group / limit), _lines(group / usage)
    if most and most[0] != "max" and used:
        stat = dict(line.split(maxsplit=1) for line in _lines(group / "memory.stat"))
        yield int(most[0]) - int(used[0]) + int(stat.get(cached, 0))


def _lines(path: Path) -> list[str]:
    return read_text(path).splitlines()
