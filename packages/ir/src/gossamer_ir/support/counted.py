"""Numbers with nouns, for messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, in the plural unless the number is 1.

    >>> counted(1, "vector"), counted(3, "vector"), counted(0, "axis", "axes")
    ('1 vector', '3 vectors', '0 axes')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
