"""The caches of this machine, as Linux describes them."""

from __future__ import annotations

from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

MESH_BYTES = 16 << 20
"""The part of Intel's last level that a schedule may count on. The cores of a socket share its slices, a
virtual machine sees all of them, and a load from a slice takes about as long as three from a core's second
level (measured on a machine that reports 300 MiB: 22 GB/s from 4 MiB up, 59 below). Compared with thresholds
from the reported size, those from 16 MiB give SpMM of graphs 1.1 to 1.6 times the speed, and nothing loses;
from 8 MiB, finite elements lose a third."""


def cache_bytes(level: int, folder: Path = _CACHES) -> int:
    """Return the size of the data or unified cache of a level, rounded down to a power of two; 0 if unknown.

    Rounding gives machines with similar caches the same schedules, and so the same kernels.
    """
    sizes = [_size(cache) for cache in folder.glob("index*") if _is_wanted(cache, level)]
    return 1 << (max(sizes).bit_length() - 1) if any(sizes) else 0


def shared_cache_bytes(vendor: str, folder: Path = _CACHES) -> int:
    """Return the size of the last level that schedules count on, for a vendor as in `/proc/cpuinfo`; 0 if
    unknown."""
    reported = cache_bytes(3, folder)
    return min(reported, MESH_BYTES) if vendor == "GenuineIntel" else reported


def _is_wanted(cache: Path, level: int) -> bool:
    return _text(cache / "level") == str(level) and _text(cache / "type") != "Instruction"


def _size(cache: Path) -> int:
    """Return the size of a cache from a text such as `1024K`; 0 if it is not one."""
    text = _text(cache / "size")
    number, unit = text[:-1], text[-1:]
    return int(number) * _UNITS[unit] if number.isdecimal() and unit in _UNITS else 0


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
