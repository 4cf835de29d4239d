"""The machine and the versions that figures belong to."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import msgspec

CPUINFO = Path("/proc/cpuinfo")
VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class MachineDescription(msgspec.Struct, frozen=True):
    """A name, the processor by model name, family and model, its vendor, and the rest of the machine."""

    name: str
    cpu: str
    vendor: str
    processors: int
    caches: dict[str, str]
    memory_gb: float
    system: str
    python: str


def describe_machine(name: str | None = None) -> MachineDescription:
    """Describe this machine; its name is by default that of its processor."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    processors = len(os.sched_getaffinity(0))
    python = platform.python_version()
    cpu = cpu_name()
    vendor = vendor_name()
    return MachineDescription(
        name=short_name(name or cpu),
        cpu=cpu,
        vendor=vendor,
        processors=processors,
        caches=caches(),
        memory_gb=round(memory, 1),
        system=platform.platform(),
        python=python,
    )


def short_name(text: str) -> str:
    """Return a name for files, without what names of processors repeat.

    >>> short_name("Intel(R) Xeon(R) Processor @ 2.80GHz (family 6, model 106)")
    'intel-xeon-family-6-model-106'
    """
    text = re.sub(r"\((r|tm)\)|processor|@ *[0-9.]+ghz", " ", text.lower())
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")


def cpu_name(path: Path = CPUINFO) -> str:
    """Return, for example, `AMD EPYC (family 26, model 2)`; virtual machines have generic model names."""
    fields = cpu_fields(path)
    if not fields:
        return platform.processor() or platform.machine()
    name = fields.get("model name", platform.machine())
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields.get('model', '?')})"


def vendor_name(path: Path = CPUINFO) -> str:
    """Return the vendor of the processor, such as `Intel`."""
    vendor = cpu_fields(path).get("vendor_id", "unknown vendor")
    return VENDORS.get(vendor, vendor)


def cpu_fields(path: Path) -> dict[str, str]:
    """Return the facts about the first processor; none without the file."""
    if not path.exists():
        return {}
    pairs = (line.partition(":") for line in path.read_text().split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def caches(folder: Path = CACHES) -> dict[str, str]:
    """Return the sizes of the first processor's caches, as in {"L1 Data": "48K"}."""
    return {
        f"L{read_attribute(index, 'level')} {read_attribute(index, 'type')}": read_attribute(
            index, "size"
        )
        for index in sorted(folder.glob("index*"))
    }


def cache_share(threads: int, folder: Path = CACHES) -> int:
    """Return the bytes of second and third level cache available to this many threads: one second
    level each, and the share of the third level that belongs to our processors."""
    ours, total = os.sched_getaffinity(0), 0
    for index in folder.glob("index*"):
        level, size = int(read_attribute(index, "level")), bytes_of(read_attribute(index, "size"))
        sharing = processors_of(read_attribute(index, "shared_cpu_list"))
        if level == 2:
            total += size * min(threads, max(1, len(ours) // len(sharing)))
        elif level == 3:
            total += size * len(ours & sharing) // len(sharing)
    return total


def read_attribute(index: Path, part: str) -> str:
    """Read one attribute of a cache."""
    return (index / part).read_text().strip()


def bytes_of(size: str) -> int:
    """Parse a size in the kernel's notation.

    >>> bytes_of("1024K"), bytes_of("32M")
    (1048576, 33554432)
    """
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(size.rstrip("KMG")) * units.get(size[-1], 1)


def processors_of(text: str) -> set[int]:
    """Parse a list of processors in the kernel's notation.

    >>> sorted(processors_of("0-2,8"))
    [0, 1, 2, 8]
    """
    processors: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        processors |= set(range(int(first), int(last or first) + 1))
    return processors
