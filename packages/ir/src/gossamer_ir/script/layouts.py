"""Buffers whose dimensions are stored in another order than they are indexed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from gossamer_ir.nodes import Expr

Item = TypeVar("Item")


class Layout(msgspec.Struct, frozen=True):
    """How a buffer is stored: its dimensions outermost first, the extents of these, and whether a last
    one is added that is always indexed by 0."""

    order: tuple[int, ...]
    shape: tuple[Expr, ...]
    is_spaced: bool

    @property
    def is_plain(self) -> bool:
        """Whether elements are indexed as they are written."""
        return not self.is_spaced and self.order == tuple(range(len(self.order)))


def arranged(layout: Layout | None, indices: Sequence[Item], *, zero: Item) -> tuple[Item, ...]:
    """The indices (or ranges) of an element in the order in which dimensions are stored; `zero` is that of
    an added dimension.

    >>> arranged(Layout((1, 0), (), is_spaced=True), ["i", "j"], zero="0")
    ('j', 'i', '0')
    """
    if layout is None or len(indices) != len(layout.order):
        return tuple(indices)
    last = (zero,) if layout.is_spaced else ()
    return (*(indices[at] for at in layout.order), *last)
