"""Sizes of memory in words."""

from __future__ import annotations


def size_in_words(size: int) -> str:
    """Return a size in bytes in words.

    >>> size_in_words(72), size_in_words(1_234_567), size_in_words(2 << 20)
    ('72 bytes', '1.18 MiB', '2 MiB')
    """
    if size < 1024:
        return f"{size} bytes"
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1000:
            break
        number, unit = number / 1024, larger
    return f"{number:.3g} {unit}"
