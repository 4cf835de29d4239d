"""The caches of this machine, as Linux describes them."""

from __future__ import annotations

from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_bytes(level: int, folder: Path = _CACHES) -> int:
    """Return the size of the data or unified cache of a level, rounded down to a power of two; 0 if unknown.

    Rounding gives machines with similar caches the same schedules, and so the same kernels.
    """
    sizes = [_size(cache) for cache in folder.glob("index*") if _is_wanted(cache, level)]
    return 1 << (max(sizes).bit_length() - 1) if any(sizes) else 0


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
