"""Which machine and which versions the figures belong to."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import msgspec

PACKAGES = ("gossamer", "gossamer-generic-cpu", "llvmlite", "numpy", "scipy", "mkl", "numba")


class Machine(msgspec.Struct, frozen=True):
    """The processor by its model name, family and model, and what surrounds it."""

    cpu: str
    processors: int
    caches: dict[str, str]
    memory_gb: float
    system: str
    python: str


def describe_machine() -> Machine:
    """The machine that runs this."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    processors = len(os.sched_getaffinity(0))
    python = platform.python_version()
    return Machine(cpu_name(), processors, caches(), round(memory, 1), platform.platform(), python)


def cpu_name(path: Path = Path("/proc/cpuinfo")) -> str:
    """As in `AMD EPYC (family 26, model 2)`: model names of virtual machines alone say little."""
    if not path.exists():
        return platform.processor() or platform.machine()
    pairs = (line.partition(":") for line in path.read_text().split("\n\n")[0].splitlines())
    fields = {key.strip(): value.strip() for key, _, value in pairs}
    name = fields.get("model name", platform.machine())
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields.get('model', '?')})"


def caches(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict[str, str]:
    """Sizes of the first processor's caches, as in {"L1 Data": "48K"}."""
    found = {}
    for index in sorted(folder.glob("index*")):
        level, kind, size = (
            (index / part).read_text().strip() for part in ("level", "type", "size")
        )
        found[f"L{level} {kind}"] = size
    return found


def versions() -> dict[str, str]:
    """Versions of what takes part, as far as it is installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
