"""Buffers whose elements are stored in another way than they are indexed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer_ir.core.build import ONE, ZERO, add, dtype_of, mul, sub
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Broadcast, Expr, Lanes, Range


class Layout(msgspec.Struct, frozen=True):
    """How a buffer is stored: its dimensions outermost first, the extents of these, and whether a last
    one is added that is always indexed by 0."""

    order: tuple[int, ...]
    shape: tuple[Expr, ...]
    is_spaced: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether elements are indexed as they are written."""
        return not self.is_spaced and self.order == tuple(range(len(self.order)))


class FlatLayout(msgspec.Struct, frozen=True):
    """A buffer that is stored in one dimension: where the element at 0 lies, and what a step along each
    dimension adds."""

    shape: tuple[Expr, ...]
    offset: Expr
    strides: tuple[Expr, ...]
    is_plain = False


AnyLayout = Layout | FlatLayout


def indices_in(layout: AnyLayout | None, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices of an element where it is stored.

    >>> from gossamer_ir.core.build import index
    >>> at = (index(2), index(3))
    >>> [found.text for found in indices_in(Layout((1, 0), (), is_spaced=True), at)]
    ['3', '2', '0']
    >>> [found.text for found in indices_in(FlatLayout((), index(1), (index(5), index(2))), at)]
    ['17']
    """
    match layout:
        case Layout() if len(indices) == len(layout.order):
            last = (ZERO,) if layout.is_spaced else ()
            return (*(indices[at] for at in layout.order), *last)
        case FlatLayout() if len(indices) == len(layout.strides):
            return (_position(layout, indices),)
    return tuple(indices)


def ranges_in(layout: AnyLayout | None, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """The ranges in which elements are stored that are in some ranges."""
    match layout:
        case Layout() if len(ranges) == len(layout.order):
            last = (Range(ZERO, ONE),) if layout.is_spaced else ()
            return (*(ranges[at] for at in layout.order), *last)
        case FlatLayout() if len(ranges) == len(layout.strides):
            start = _position(layout, [found.start for found in ranges])
            return (Range(start, span([found.extent for found in ranges], layout.strides)),)
    return tuple(ranges)


def span(shape: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """From the first element of a buffer to the last one, both included.

    >>> from gossamer_ir.core.build import index
    >>> span((index(2), index(5)), (index(5), index(2))).text
    '14'
    """
    result: Expr = ONE
    for extent, stride in zip(shape, strides, strict=True):
        result = add(mul(sub(extent, ONE), stride), result)
    return result


def _position(layout: FlatLayout, indices: Sequence[Expr]) -> Expr:
    """Where an element lies, in each lane of a vector of indices."""
    vectors = [found for found in map(_lanes_of, indices) if found is not None]
    lanes = vectors[0] if vectors else None
    result = _in_lanes(layout.offset, lanes)
    for at, stride in zip(indices, layout.strides, strict=True):
        result = add(result, mul(_in_lanes(at, lanes), _in_lanes(stride, lanes)))
    return result


def _lanes_of(found: Expr) -> Lanes | None:
    dtype = DType.parse(dtype_of(found))
    return Lanes(dtype.lanes, dtype.scalable) if dtype.is_vector else None


def _in_lanes(found: Expr, lanes: Lanes | None) -> Expr:
    return found if lanes is None or _lanes_of(found) == lanes else Broadcast(found, lanes)
