"""Values of which there may be several."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def as_tuple(value: T | tuple[T, ...]) -> tuple[T, ...]:
    """Return a tuple as it is, and any other value as its only item.

    >>> as_tuple("i"), as_tuple(("i", "j"))
    (('i',), ('i', 'j'))
    """
    return value if isinstance(value, tuple) else (value,)
