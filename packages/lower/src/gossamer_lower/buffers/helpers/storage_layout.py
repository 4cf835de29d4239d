"""The storage layout of sparse buffers: the dimensions of the ordinary buffer, and offsets of elements.

A fixed axis is a dimension of its own. A varied axis is flattened into the dimension of its ancestors,
together with all axes in between. The offset of an element is the number of elements enumerated before
it; the number of elements below a range of elements of an axis is a difference of offsets (indptr).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from gossamer_ir.arith.simplify import FALSE, TRUE
from gossamer_ir.core import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Buffer,
    Compare,
    CompressedVaried,
    Const,
    DenseVaried,
    Expr,
    IfThenElse,
    Search,
    Select,
    SparseBuffer,
    Var,
)  # fmt: skip
from gossamer_lower.iterations.helpers.index_buffers import Varied, width_of

ReadOffset = Callable[[str, Expr], Expr]
"""Reads an element, as int64, of the array of offsets with this handle."""


class Dimension(msgspec.Struct, frozen=True):
    """One dimension of the ordinary buffer that replaces `buffer`: the axes that it enumerates."""

    axes: tuple[str, ...]
    buffer: SparseBuffer


class Fibre(msgspec.Struct, frozen=True):
    """A position along a varied axis, the range of elements of the fibre in which it should lie, and the
    number of elements after its end that may be accessed, too (`extra_storage`)."""

    position: Expr
    start: Expr
    end: Expr
    extra: int

    def length(self) -> Expr:
        """Return the number of positions in the fibre."""
        return build.sub(self.end, self.start)

    def extent(self) -> Expr:
        """Return the number of positions that may be accessed."""
        return build.add(self.length(), build.index(self.extra))

    def inner(self) -> Expr:
        """Return the position without an added constant of at most `extra`. If this lies in the fibre, the
        position itself may be accessed."""
        match self.position:
            case Binary(op="add", lhs=before, rhs=Const() as step) if build.integer_value(
                step
            ) in range(self.extra + 1):
                return before
        return self.position


class Check(msgspec.Struct, frozen=True):
    """A sufficient condition for a comparison: the index lies in [0, extent), or `known` holds."""

    index: Expr
    extent: Expr
    known: Expr | None = None


class Storage:
    """The dimensions of the ordinary buffers, their extents, and the offsets of elements in them."""

    def __init__(
        self, axes: Mapping[str, Axis], read: ReadOffset, *, ranges: Mapping[str, Expr]
    ) -> None:
        self._axes = axes
        self._read = read
        self._ranges = ranges
        self.checks: dict[Expr, Check] = {}

    def check(self, op: Literal["ge", "lt"], index: Expr, extent: Expr) -> Compare:
        """Return the comparison of an index with 0, or with an extent, and records how to prove it."""
        return self.proved_by(Check(index, extent), op, index, extent)

    def proved_by(
        self, check: Check, op: Literal["ge", "lt"], index: Expr, extent: Expr
    ) -> Compare:
        """Return the comparison as `check` does, with another way to prove it."""
        compared = Compare(op, index, build.ZERO if op == "ge" else extent)
        self.checks[compared] = check
        return compared

    def is_check(self, condition: Expr) -> bool:
        """Return whether a condition consists of recorded checks only."""
        match condition:
            case IfThenElse(condition=first, if_true=second, if_false=other) if other == FALSE:
                return self.is_check(first) and self.is_check(second)
            case IfThenElse(if_true=other, if_false=second) if other == TRUE:
                return self.is_check(second)
            case Binary(op="and", lhs=first, rhs=second):
                return self.is_check(first) and self.is_check(second)
        return condition in self.checks

    def dimensions(self, buffer: SparseBuffer) -> list[Dimension]:
        """Return the dimensions of the ordinary buffer."""
        groups: list[list[str]] = []
        for name in buffer.axes:
            first = len(groups)
            if self._is_varied(name):
                above = set(self._chain(name)[:-1])
                first = next(at for at, group in enumerate(groups) if above & set(group))
            groups[first:] = [[*(member for group in groups[first:] for member in group), name]]
        return [Dimension(tuple(group), buffer) for group in groups]

    def nnz(self, axis: Varied) -> Expr:
        """Return the number of elements of a varied axis, over all fibres: the last entry of its indptr."""
        return axis.nnz or self._read(axis.indptr, self._size(axis.parent))

    def extent(self, dimension: Dimension) -> Expr:
        """Return the number of elements that a dimension enumerates.

        Raises `UnsupportedError` (`lower.storage`) if several varied axes have the same parent and the
        buffer has no `offsets`.
        """
        return build.product(self._count(name, {}, dimension) for name in self._roots(dimension))

    def offset(self, dimension: Dimension, positions: Mapping[str, Expr]) -> Expr:
        """Return the offset of an element along a dimension, or -1 if a position is out of bounds along a
        fixed axis: the offset would be that of another element, and no bounds check would notice."""
        if len(dimension.axes) == 1:
            return positions[dimension.axes[0]]
        offset = self._offset(dimension, positions)
        return self._checked(offset, dimension.axes, dimension.buffer, positions)

    def rest(self, buffer: SparseBuffer) -> Expr | None:
        """Return the number of positions along the last axis of a buffer; None unless it is fixed and
        flattened into the dimension of other axes."""
        name = buffer.axes[-1]
        if len(self.dimensions(buffer)[-1].axes) == 1 or self._is_varied(name):
            return None
        return build.add(width_of(self._axes[name]), build.index(_extra(buffer, name)))

    def fibres(self, buffer: SparseBuffer, along: Sequence[Expr]) -> Iterator[Fibre]:
        """Yield the fibre of each varied axis in which the position along it should lie. A fibre can be
        looked up only if the positions along the axes before lie in their fibres."""
        positions = dict(zip(buffer.axes, along, strict=True))
        for dimension in self.dimensions(buffer):
            elements = self._elements(dimension, positions)
            for name in dimension.axes:
                axis = self._axes[name]
                if isinstance(axis, (DenseVaried, CompressedVaried)):
                    above = [
                        ancestor for ancestor in self._chain(name)[:-1] if ancestor in elements
                    ]
                    parent = self._checked(elements[axis.parent], above, buffer, positions)
                    start = self._read(axis.indptr, parent)
                    end = self._read(axis.indptr, build.add(parent, build.ONE))
                    yield Fibre(positions[name], start, end, _extra(buffer, name))

    def _checked(
        self,
        offset: Expr,
        axes: Sequence[str],
        buffer: SparseBuffer,
        positions: Mapping[str, Expr],
    ) -> Expr:
        """Return an offset along axes, or -1 if a position is out of bounds along a fixed one of them. The
        first axis needs no check: an offset out of bounds there is out of bounds of the buffer."""
        parts: list[Expr] = []
        for name in axes[1:]:
            axis, position = self._axes[name], positions[name]
            if isinstance(axis, (DenseVaried, CompressedVaried)):
                continue
            width, extra = width_of(axis), _extra(buffer, name)
            if not self._is_plain(position, width, extra):
                end = build.add(width, build.index(extra))
                parts += [self.check("ge", position, end), self.check("lt", position, end)]
        inside = build.conjoined(parts)
        return offset if inside is None else IfThenElse(inside, offset, build.index(-1))

    def _is_plain(self, position: Expr, width: Expr, extra: int) -> bool:
        value, limit = build.integer_value(position), build.integer_value(width)
        if value is not None and limit is not None:
            return 0 <= value < limit + extra
        match position:
            case Var(name=name):
                return self._ranges.get(name) == width
            case Binary(op="add", lhs=before, rhs=Const() as step):
                count = build.integer_value(step)
                return count in range(extra + 1) and self._is_plain(before, width, 0)
            case Binary(op="floormod", rhs=divisor):
                return divisor == width
        return False

    def _offset(self, dimension: Dimension, positions: Mapping[str, Expr]) -> Expr:
        elements = self._elements(dimension, positions)
        if self._chain(dimension.axes[-1]) == list(dimension.axes):
            return elements[dimension.axes[-1]]
        offset: Expr = build.ZERO
        for at, name in enumerate(dimension.axes):
            before = self._since_start(name, elements, positions[name], dimension)
            beside = [
                self._count(later, elements, dimension)
                for later in dimension.axes[at + 1 :]
                if self._axes[later].parent not in dimension.axes[at:]
            ]
            offset = build.add(offset, build.product([before, *beside]))
        return offset

    def offsets(self, buffer: SparseBuffer, name: str) -> Buffer | None:
        """Return the buffer of the offsets for varied axes with the same parent, under this name and with
        the dtype of their indptr; None if there are none."""
        for above, varied, _ in self._siblings(buffer):
            if buffer.offsets is not None:
                shape = (build.add(self._size(above), build.ONE),)
                dtype = getattr(self._axes[varied[0]], "indptr_dtype", "int64")
                return Buffer(name, shape, dtype, buffer.offsets)
        return None

    def multiplied(self, buffer: SparseBuffer) -> list[str]:
        """Return the indptr of the varied axes with the same parent, if the differences of the offsets are
        the products of their lengths; nothing if further axes are below them."""
        for _, varied, dimension in self._siblings(buffer):
            axes = [self._axes[name] for name in varied]
            if all(self._below(name, dimension) == ([], build.ONE) for name in varied):
                return [
                    axis.indptr
                    for axis in axes
                    if isinstance(axis, (DenseVaried, CompressedVaried))
                ]
        return []

    def _siblings(self, buffer: SparseBuffer) -> Iterator[tuple[str, list[str], Dimension]]:
        """Yield each axis of a buffer that has several varied children, with these and their dimension."""
        for dimension in self.dimensions(buffer):
            for above in dimension.axes:
                varied, _ = self._below(above, dimension)
                if len(varied) > 1:
                    yield above, varied, dimension

    # --- elements of an axis, numbered over all fibres

    def _elements(self, dimension: Dimension, positions: Mapping[str, Expr]) -> dict[str, Expr]:
        elements: dict[str, Expr] = {}
        for name in dimension.axes:
            elements[name] = element(self._start(name, elements), positions[name])
        return elements

    def _start(self, name: str, elements: Mapping[str, Expr]) -> Expr:
        """Return the offset of the fibre selected by the other axes' elements."""
        parent = elements.get(self._axes[name].parent or "")
        return build.ZERO if parent is None else self._first(name, parent)

    def _first(self, name: str, parent: Expr) -> Expr:
        axis = self._axes[name]
        if isinstance(axis, (DenseVaried, CompressedVaried)):
            return self._read(axis.indptr, parent)
        return build.mul(parent, width_of(axis))

    def _size(self, name: str) -> Expr:
        axis = self._axes[name]
        if isinstance(axis, (DenseVaried, CompressedVaried)):
            return self.nnz(axis)
        return width_of(axis) if axis.parent is None else self._first(name, self._size(axis.parent))

    # --- numbers of elements of a dimension below elements of an axis

    def _before(self, name: str, element: Expr, dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension below the elements of an axis before this one."""
        varied, width = self._below(name, dimension)
        if not varied:
            return build.mul(element, width)
        if len(varied) > 1:
            return build.mul(self._read(_offsets_of(dimension, varied), element), width)
        below = self._before(varied[0], self._first(varied[0], element), dimension)
        return build.mul(below, width)

    def _since_start(
        self, name: str, elements: Mapping[str, Expr], position: Expr, dimension: Dimension
    ) -> Expr:
        """Return the number of elements of the dimension below the positions of a fibre before this one."""
        if not self._below(name, dimension)[0]:
            return build.mul(position, self._below(name, dimension)[1])
        before, start = self._before(name, elements[name], dimension), self._start(name, elements)
        if start == build.ZERO:
            return before
        return build.sub(before, self._before(name, start, dimension))

    def _total(self, name: str, dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension below all elements of an axis."""
        varied, width = self._below(name, dimension)
        if len(varied) == 1:
            return build.mul(self._total(varied[0], dimension), width)
        return self._before(name, self._size(name), dimension)

    def _count(self, name: str, elements: Mapping[str, Expr], dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension in one fibre of an axis."""
        parent = elements.get(self._axes[name].parent or "")
        if not self._varies(name, dimension):
            return build.mul(width_of(self._axes[name]), self._below(name, dimension)[1])
        if parent is None:
            return self._total(name, dimension)
        following = self._first(name, build.add(parent, build.ONE))
        low = self._before(name, self._first(name, parent), dimension)
        return build.sub(self._before(name, following, dimension), low)

    def _below(self, name: str, dimension: Dimension) -> tuple[list[str], Expr]:
        """Return the children of an axis that are varied or have varied descendants, and the product of
        the widths of the others."""
        children = [axis for axis in dimension.axes if self._axes[axis].parent == name]
        varied = [child for child in children if self._varies(child, dimension)]
        fixed = [child for child in children if child not in varied]
        widths = (
            build.mul(width_of(self._axes[child]), self._below(child, dimension)[1])
            for child in fixed
        )
        return varied, build.product(widths)

    def _varies(self, name: str, dimension: Dimension) -> bool:
        return self._is_varied(name) or bool(self._below(name, dimension)[0])

    def _roots(self, dimension: Dimension) -> list[str]:
        return [name for name in dimension.axes if self._axes[name].parent not in dimension.axes]

    def _is_varied(self, name: str) -> bool:
        return isinstance(self._axes[name], (DenseVaried, CompressedVaried))

    def _chain(self, name: str) -> list[str]:
        """Return the axis and its ancestors, root first."""
        parent = self._axes[name].parent
        return [name] if parent is None else [*self._chain(parent), name]


def _extra(buffer: SparseBuffer, axis: str) -> int:
    """Return the number of positions after the end of each fibre that may be accessed: only along the
    last axis, as many as the extra elements of the buffer."""
    return buffer.extra_storage if axis == buffer.axes[-1] else 0


def element(start: Expr, position: Expr) -> Expr:
    """Return start + position, simplified to the element from which the position was computed, if any."""
    match start, position:
        case _, Binary(op="sub", lhs=origin, rhs=first) if first == start:
            return origin
        case _, Select(
            condition=Compare(op="lt", lhs=Search() as origin), if_false=Binary(op="sub", rhs=first)
        ) if first == start and position == relative(origin, start):
            return origin
        case _, Binary(op="add", lhs=before, rhs=Const() as step):
            origin = element(start, before)
            if origin != build.add(start, before):
                return build.add(origin, step)
        case (
            Binary(op="mul", lhs=Binary(op="floordiv") as fibre, rhs=width),
            Binary(op="floormod", lhs=number, rhs=divisor),
        ) if divisor == width and fibre == Binary("floordiv", number, width):
            return number
    return build.add(start, position)


def relative(search: Search, start: Expr) -> Expr:
    """Return the position in its fibre of the element that an exact search found; -1 if it found none."""
    return Select(Compare("lt", search, build.ZERO), search, build.sub(search, start))


def found_by_search(position: Expr, start: Expr) -> Search | None:
    """Return the exact search that computes a position in the fibre with this start; None if none does."""
    match position:
        case Search(kind="exact") if start == build.ZERO:
            return position
        case Select(condition=Compare(op="lt", lhs=Search() as search)) if position == relative(
            search, start
        ):
            return search
    return None


def _offsets_of(dimension: Dimension, varied: list[str]) -> str:
    if dimension.buffer.offsets is None:
        raise UnsupportedError(
            "lower.storage",
            f"The buffer '{dimension.buffer.name}' has several varied axes with the same parent "
            f"({', '.join(varied)}), but no offsets.",
            hint="Give the prefix sums of the products of their lengths as offsets=.",
        )
    return dimension.buffer.offsets
