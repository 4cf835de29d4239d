"""Sizes of memory in words."""

from __future__ import annotations


def size_in_words(size: int) -> str:
    """Return a size in bytes in words.

    >>> size_in_words(72), size_in_words(1_234_567)
    ('72 bytes', '1.23 MB')
    """
    if size < 1000:
        return f"{size} bytes"
    number, unit = float(size), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if number < 999.5:
            break
        number, unit = number / 1000, larger
    return f"{number:.3g} {unit}"
