"""The machine and the versions that figures belong to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from pathlib import Path

import msgspec

PACKAGES = ("gossamer", "gossamer-generic-cpu", "llvmlite", "numpy", "scipy", "mkl", "numba")


CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class Machine(msgspec.Struct, frozen=True):
    """A name, the processor by model name, family and model, and the rest of the machine."""

    name: str
    cpu: str
    processors: int
    caches: dict[str, str]
    memory_gb: float
    system: str
    python: str


def describe_machine(name: str = "") -> Machine:
    """Describes this machine; its name is by default that of its processor."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    processors = len(os.sched_getaffinity(0))
    python = platform.python_version()
    cpu = cpu_name()
    return Machine(
        name=re.sub(r"[^a-z0-9]+", "-", (name or cpu).lower()).strip("-"),
        cpu=cpu,
        processors=processors,
        caches=caches(),
        memory_gb=round(memory, 1),
        system=platform.platform(),
        python=python,
    )


def cpu_name(path: Path = Path("/proc/cpuinfo")) -> str:
    """Returns, for example, `AMD EPYC (family 26, model 2)`; virtual machines have generic model names."""
    if not path.exists():
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in path.read_text().split("\n\n")[0].splitlines())
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    name = fields.get("model name", platform.machine())
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields.get('model', '?')})"


def caches(folder: Path = CACHES) -> dict[str, str]:
    """Returns the sizes of the first processor's caches, as in {"L1 Data": "48K"}."""
    return {
        f"L{read(index, 'level')} {read(index, 'type')}": read(index, "size")
        for index in sorted(folder.glob("index*"))
    }


def cache_share(threads: int, folder: Path = CACHES) -> int:
    """Returns the bytes of second and third level cache available to this many threads: one second
    level each, and the share of the third level that belongs to our processors."""
    ours, total = os.sched_getaffinity(0), 0
    for index in folder.glob("index*"):
        level, size = int(read(index, "level")), bytes_of(read(index, "size"))
        sharing = processors_of(read(index, "shared_cpu_list"))
        if level == 2:
            total += size * min(threads, max(1, len(ours) // len(sharing)))
        elif level == 3:
            total += size * len(ours & sharing) // len(sharing)
    return total


def read(index: Path, part: str) -> str:
    """Reads one attribute of a cache."""
    return (index / part).read_text().strip()


def bytes_of(size: str) -> int:
    """Parses a size in the kernel's notation.

    >>> bytes_of("1024K"), bytes_of("32M")
    (1048576, 33554432)
    """
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size.rstrip("KMG")) * units.get(size[-1], 1)


def processors_of(text: str) -> set[int]:
    """Parses a list of processors in the kernel's notation.

    >>> sorted(processors_of("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def versions(**others: str | None) -> dict[str, str]:
    """Returns the versions of installed contenders; `others` are those of other environments."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {name: version for name, version in others.items() if version}
