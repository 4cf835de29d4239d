"""Properties of the elements of a result that the parts of a tensor visit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import msgspec


class RowsOfParts(msgspec.Struct, frozen=True):
    """The parts, by name, that initialize the elements that they visit, since none before them visits these.
    If they visit all that the undivided iteration initializes (`are_all`), nothing else does. If they
    `are_declared`, the program declares that they have no rows in common."""

    initializing: Collection[str] = ()
    are_all: bool = False
    are_declared: bool = False


RowsOf: TypeAlias = Callable[[int], RowsOfParts]
"""Returns what is known of the results along a dimension of the tensor."""


def none_initialize(dimension: int) -> RowsOfParts:
    """Return that nothing is known, so that all parts add.

    >>> none_initialize(0)
    RowsOfParts(initializing=(), are_all=False, are_declared=False)
    """
    return RowsOfParts()
