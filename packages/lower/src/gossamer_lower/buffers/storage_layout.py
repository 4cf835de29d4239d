"""Where elements lie in the ordinary buffer of a sparse one: the nested enumeration of its axes.

Fixed axes are dimensions of their own. A varied one is flattened into the dimension that its
ancestors are in, with all that stands between. The offset there is the number of elements enumerated
before; how many lie below a range of elements of an axis is a difference of offsets (indptr).
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
from gossamer_lower.iterations.index_buffers import Varied, width_of

ReadOffset = Callable[[str, Expr], Expr]
"""An element of the array of offsets of a handle, as int64."""


class Dimension(msgspec.Struct, frozen=True):
    """One dimension of the ordinary buffer: the axes that it enumerates, of which buffer."""

    axes: tuple[str, ...]
    buffer: SparseBuffer


class Fibre(msgspec.Struct, frozen=True):
    """A position along a varied axis, where the fibre that it should lie in begins and ends, and how many
    elements behind that may be named as well."""

    position: Expr
    start: Expr
    end: Expr
    extra: int

    def length(self) -> Expr:
        """How many positions the fibre has."""
        return build.sub(self.end, self.start)

    def extent(self) -> Expr:
        """How many positions may be named."""
        return build.add(self.length(), build.index(self.extra))

    def inner(self) -> Expr:
        """The position without a constant that stays within the further elements: if this lies in the
        fibre, so does the position."""
        match self.position:
            case Binary(op="add", lhs=before, rhs=Const() as step) if build.integer_value(
                step
            ) in range(self.extra + 1):
                return before
        return self.position


class Check(msgspec.Struct, frozen=True):
    """What proves a comparison: that an index lies in [0, extent), or that `known` holds."""

    index: Expr
    extent: Expr
    known: Expr | None = None


class Storage:
    """The dimensions of sparse buffers, their extents, and the offsets in them."""

    def __init__(
        self, axes: Mapping[str, Axis], read: ReadOffset, *, ranges: Mapping[str, Expr]
    ) -> None:
        self._axes = axes
        self._read = read
        self._ranges = ranges
        self.checks: dict[Expr, Check] = {}

    def check(self, op: Literal["ge", "lt"], index: Expr, extent: Expr) -> Compare:
        """That an index is 0 or more, or less than an extent."""
        return self.proved_by(Check(index, extent), op, index, extent)

    def proved_by(
        self, check: Check, op: Literal["ge", "lt"], index: Expr, extent: Expr
    ) -> Compare:
        """As `check`, proved by something else."""
        compared = Compare(op, index, build.ZERO if op == "ge" else extent)
        self.checks[compared] = check
        return compared

    def is_check(self, condition: Expr) -> bool:
        """Whether a condition consists of checks."""
        match condition:
            case IfThenElse(condition=first, if_true=second, if_false=other) if other == FALSE:
                return self.is_check(first) and self.is_check(second)
            case IfThenElse(if_true=other, if_false=second) if other == TRUE:
                return self.is_check(second)
            case Binary(op="and", lhs=first, rhs=second):
                return self.is_check(first) and self.is_check(second)
        return condition in self.checks

    def dimensions(self, buffer: SparseBuffer) -> list[Dimension]:
        """The dimensions of the ordinary buffer."""
        groups: list[list[str]] = []
        for name in buffer.axes:
            first = len(groups)
            if self._is_varied(name):
                above = set(self._chain(name)[:-1])
                first = next(at for at, group in enumerate(groups) if above & set(group))
            groups[first:] = [[*(found for group in groups[first:] for found in group), name]]
        return [Dimension(tuple(group), buffer) for group in groups]

    def nnz(self, axis: Varied) -> Expr:
        """How many elements a varied axis has over all fibres: the last of its indptr."""
        return axis.nnz or self._read(axis.indptr, self._size(axis.parent))

    def extent(self, dimension: Dimension) -> Expr:
        """How many elements a dimension enumerates.

        Raises `UnsupportedError` (`lower.storage`) where several axes vary below one and nothing
        says how many elements that makes.
        """
        return build.product(self._count(name, {}, dimension) for name in self._roots(dimension))

    def offset(self, dimension: Dimension, positions: Mapping[str, Expr]) -> Expr:
        """The offset of an element along a dimension; -1 where a position lies beyond a fixed axis, so
        that it would be the offset of another element."""
        if len(dimension.axes) == 1:
            return positions[dimension.axes[0]]
        offset = self._offset(dimension, positions)
        return self._checked(offset, dimension.axes, dimension.buffer, positions)

    def rest(self, buffer: SparseBuffer) -> Expr | None:
        """How many positions the last axis of a buffer has, if it is fixed and no dimension of its own."""
        name = buffer.axes[-1]
        if len(self.dimensions(buffer)[-1].axes) == 1 or self._is_varied(name):
            return None
        return build.add(width_of(self._axes[name]), build.index(_extra(buffer, name)))

    def fibres(self, buffer: SparseBuffer, along: Sequence[Expr]) -> Iterator[Fibre]:
        """The fibres of the varied axes of a buffer in which positions along all axes should lie, each
        of which can be found where the position before lies in its own."""
        positions = dict(zip(buffer.axes, along, strict=True))
        for dimension in self.dimensions(buffer):
            elements = self._elements(dimension, positions)
            for name in dimension.axes:
                axis = self._axes[name]
                if isinstance(axis, (DenseVaried, CompressedVaried)):
                    above = [found for found in self._chain(name)[:-1] if found in elements]
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
        """An offset along some axes; -1 where a position lies beyond a fixed one of them. One beyond the
        first axis is beyond all elements."""
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
        """The buffer of the offsets of axes that vary side by side, under this name; it has the
        dtype of their indptr."""
        for above, varied, _ in self._siblings(buffer):
            if buffer.offsets is not None:
                shape = (build.add(self._size(above), build.ONE),)
                dtype = getattr(self._axes[varied[0]], "indptr_dtype", "int64")
                return Buffer(name, shape, dtype, buffer.offsets)
        return None

    def multiplied(self, buffer: SparseBuffer) -> list[str]:
        """The indptr of the axes that vary side by side, where the products of their lengths are the
        steps of the offsets; nothing where more lies below them."""
        for _, varied, dimension in self._siblings(buffer):
            found = [self._axes[name] for name in varied]
            if all(self._below(name, dimension) == ([], build.ONE) for name in varied):
                return [
                    axis.indptr
                    for axis in found
                    if isinstance(axis, (DenseVaried, CompressedVaried))
                ]
        return []

    def _siblings(self, buffer: SparseBuffer) -> Iterator[tuple[str, list[str], Dimension]]:
        """Each axis of a buffer below which several vary, with these and the dimension they are in."""
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
        """The first element in the fibre that elements of other axes select."""
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

    # --- what lies below elements of an axis, in a dimension

    def _before(self, name: str, element: Expr, dimension: Dimension) -> Expr:
        """How many elements of the dimension lie below the elements of an axis before this one."""
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
        """How many elements of the dimension lie below the positions of a fibre before this one."""
        if not self._below(name, dimension)[0]:
            return build.mul(position, self._below(name, dimension)[1])
        before, start = self._before(name, elements[name], dimension), self._start(name, elements)
        if start == build.ZERO:
            return before
        return build.sub(before, self._before(name, start, dimension))

    def _total(self, name: str, dimension: Dimension) -> Expr:
        """How many elements of the dimension lie below all elements of an axis."""
        varied, width = self._below(name, dimension)
        if len(varied) == 1:
            return build.mul(self._total(varied[0], dimension), width)
        return self._before(name, self._size(name), dimension)

    def _count(self, name: str, elements: Mapping[str, Expr], dimension: Dimension) -> Expr:
        """How many elements of the dimension lie in one fibre of an axis."""
        parent = elements.get(self._axes[name].parent or "")
        if not self._varies(name, dimension):
            return build.mul(width_of(self._axes[name]), self._below(name, dimension)[1])
        if parent is None:
            return self._total(name, dimension)
        following = self._first(name, build.add(parent, build.ONE))
        low = self._before(name, self._first(name, parent), dimension)
        return build.sub(self._before(name, following, dimension), low)

    def _below(self, name: str, dimension: Dimension) -> tuple[list[str], Expr]:
        """The children of an axis below which something varies, and the width of all others."""
        children = [found for found in dimension.axes if self._axes[found].parent == name]
        varied = [found for found in children if self._varies(found, dimension)]
        fixed = [found for found in children if found not in varied]
        widths = (
            build.mul(width_of(self._axes[found]), self._below(found, dimension)[1])
            for found in fixed
        )
        return varied, build.product(widths)

    def _varies(self, name: str, dimension: Dimension) -> bool:
        return self._is_varied(name) or bool(self._below(name, dimension)[0])

    def _roots(self, dimension: Dimension) -> list[str]:
        return [name for name in dimension.axes if self._axes[name].parent not in dimension.axes]

    def _is_varied(self, name: str) -> bool:
        return isinstance(self._axes[name], (DenseVaried, CompressedVaried))

    def _chain(self, name: str) -> list[str]:
        """The axis with its ancestors, root first."""
        parent = self._axes[name].parent
        return [name] if parent is None else [*self._chain(parent), name]


def _extra(buffer: SparseBuffer, axis: str) -> int:
    """How many positions along an axis a buffer has beyond those of each fibre: along its last axis, as
    many as elements lie behind its last one."""
    return buffer.extra_storage if axis == buffer.axes[-1] else 0


def element(start: Expr, position: Expr) -> Expr:
    """start + position, which is the element again where the position was computed from it."""
    match start, position:
        case _, Binary(op="sub", lhs=found, rhs=first) if first == start:
            return found
        case _, Select(
            condition=Compare(op="lt", lhs=Search() as found), if_false=Binary(op="sub", rhs=first)
        ) if first == start and position == relative(found, start):
            return found
        case _, Binary(op="add", lhs=before, rhs=Const() as step):
            found = element(start, before)
            if found != build.add(start, before):
                return build.add(found, step)
        case (
            Binary(op="mul", lhs=Binary(op="floordiv") as fibre, rhs=width),
            Binary(op="floormod", lhs=found, rhs=divisor),
        ) if divisor == width and fibre == Binary("floordiv", found, width):
            return found
    return build.add(start, position)


def relative(found: Search, start: Expr) -> Expr:
    """The position in a fibre of an element found by an exact search; still -1 where there is none."""
    return Select(Compare("lt", found, build.ZERO), found, build.sub(found, start))


def found_by_search(position: Expr, start: Expr) -> Search | None:
    """The exact search that a position in a fibre with this start comes from."""
    match position:
        case Search(kind="exact") if start == build.ZERO:
            return position
        case Select(condition=Compare(op="lt", lhs=Search() as found)) if position == relative(
            found, start
        ):
            return found
    return None


def _offsets_of(dimension: Dimension, varied: list[str]) -> str:
    if dimension.buffer.offsets is None:
        raise UnsupportedError(
            "lower.storage",
            f"The buffer {dimension.buffer.name} stores axes that vary side by side "
            f"({', '.join(varied)}), and has no offsets.",
            hint="Give the prefix sums of the products of their lengths as offsets=.",
        )
    return dimension.buffer.offsets
