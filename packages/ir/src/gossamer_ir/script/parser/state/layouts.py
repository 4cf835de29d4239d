"""The layouts of buffers with strides or an offset, and the rewriting of their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from gossamer_ir.core.build import ONE, ZERO, add, mul, sub
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Broadcast, Expr, Lanes, Range


class NestedLayout(msgspec.Struct, frozen=True):
    """A buffer that is stored with permuted or padded dimensions.

    `order` lists the dimensions from the outermost, `shape` their extents. With `is_spaced`, elements are
    not contiguous: a last dimension is added that is always indexed by 0.
    """

    order: tuple[int, ...]
    shape: tuple[Expr, ...]
    is_spaced: bool = False

    @property
    def is_plain(self) -> bool:
        """True if indices do not need to be rewritten."""
        return not self.is_spaced and self.order == tuple(range(len(self.order)))


class FlatLayout(msgspec.Struct, frozen=True):
    """A buffer that is stored in one dimension: the offset of its first element, and a stride for each
    dimension."""

    shape: tuple[Expr, ...]
    offset: Expr
    strides: tuple[Expr, ...]
    is_plain = False


AnyLayout: TypeAlias = NestedLayout | FlatLayout


def indices_in(layout: AnyLayout | None, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the indices of an element in the stored buffer.

    >>> from gossamer_ir.core.build import index
    >>> at = (index(2), index(3))
    >>> [index.text for index in indices_in(NestedLayout((1, 0), (), is_spaced=True), at)]
    ['3', '2', '0']
    >>> [index.text for index in indices_in(FlatLayout((), index(1), (index(5), index(2))), at)]
    ['17']
    """
    match layout:
        case NestedLayout() if len(indices) == len(layout.order):
            last = (ZERO,) if layout.is_spaced else ()
            return (*(indices[at] for at in layout.order), *last)
        case FlatLayout() if len(indices) == len(layout.strides):
            return (_position(layout, indices),)
    return tuple(indices)


def ranges_in(layout: AnyLayout | None, ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Return the ranges of the stored buffer that contain the elements of some ranges."""
    match layout:
        case NestedLayout() if len(ranges) == len(layout.order):
            last = (Range(ZERO, ONE),) if layout.is_spaced else ()
            return (*(ranges[at] for at in layout.order), *last)
        case FlatLayout() if len(ranges) == len(layout.strides):
            start = _position(layout, [range_.start for range_ in ranges])
            return (Range(start, span([range_.extent for range_ in ranges], layout.strides)),)
    return tuple(ranges)


def span(shape: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """Return the number of slots from the first element of a buffer to the last one, both included.

    >>> from gossamer_ir.core.build import index
    >>> span((index(2), index(5)), (index(5), index(2))).text
    '14'
    """
    result: Expr = ONE
    for extent, stride in zip(shape, strides, strict=True):
        result = add(mul(sub(extent, ONE), stride), result)
    return result


def _position(layout: FlatLayout, indices: Sequence[Expr]) -> Expr:
    """Return the position of an element; a vector if an index is one."""
    vectors = [vector for vector in map(_lanes_of, indices) if vector is not None]
    lanes = vectors[0] if vectors else None
    result = _broadcast_to_lanes(layout.offset, lanes)
    for at, stride in zip(indices, layout.strides, strict=True):
        result = add(
            result, mul(_broadcast_to_lanes(at, lanes), _broadcast_to_lanes(stride, lanes))
        )
    return result


def _lanes_of(index: Expr) -> Lanes | None:
    dtype = DType.parse(dtype_of(index))
    return Lanes(dtype.lanes, dtype.scalable) if dtype.is_vector else None


def _broadcast_to_lanes(index: Expr, lanes: Lanes | None) -> Expr:
    return index if lanes is None or _lanes_of(index) == lanes else Broadcast(index, lanes)
