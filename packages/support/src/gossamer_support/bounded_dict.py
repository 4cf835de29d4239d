"""Dicts of bounded size, which drop their oldest entries."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put_bounded(table: dict[K, V], key: K, value: V, *, limit: int) -> None:
    """Store a value under a key, after dropping the oldest entries: at most `limit` remain.

    >>> table = {"a": 1, "b": 2}
    >>> put_bounded(table, "c", 3, limit=2)
    >>> table
    {'b': 2, 'c': 3}
    """
    # Dicts keep the order of insertion. Another thread may have dropped the same entry, or changes the dict
    # while its first key is looked for.
    while len(table) >= limit:
        with suppress(RuntimeError, StopIteration):
            table.pop(next(iter(table)), None)
    table[key] = value
