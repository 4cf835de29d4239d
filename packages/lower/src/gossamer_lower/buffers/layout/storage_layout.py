"""The storage layout of sparse buffers: the dimensions of the ordinary buffer, and offsets of elements.

A fixed axis is a dimension of its own. A varied axis is flattened into the dimension of its ancestors,
together with all axes in between. The offset of an element is the number of elements enumerated before
it; the number of elements below a range of elements of an axis is a difference of offsets (indptr).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gossamer_ir.core.axis_kinds import indptr_of, is_varied, width_of
from gossamer_ir.core.build import ONE, ZERO, add, index, integer_value, product, sub
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.nodes import (
    Axis,
    Binary,
    Buffer,
    Const,
    Expr,
    IfThenElse,
    Search,
    SparseBuffer,
    Var,
)
from gossamer_lower.buffers.layout.element_counts import Dimension, ElementCounts, ReadOffset
from gossamer_lower.buffers.layout.position_conditions import PositionConditions


class Fiber(msgspec.Struct, frozen=True):
    """A position along a varied axis, the range of elements of the fiber in which it should lie, and the
    number of elements after its end that may be accessed, too (`extra_storage`)."""

    position: Expr
    start: Expr
    end: Expr
    extra: int

    def length(self) -> Expr:
        """Return the number of positions in the fiber."""
        return sub(self.end, self.start)

    def extent(self) -> Expr:
        """Return the number of positions that may be accessed."""
        return add(self.length(), index(self.extra))

    def inner(self) -> Expr:
        """Return the position without an added constant of at most `extra`. If this lies in the fiber, the
        position itself may be accessed."""
        match self.position:
            case Binary(op="add", lhs=before, rhs=Const() as step) if integer_value(step) in range(
                self.extra + 1
            ):
                return before
        return self.position


class StorageLayout:
    """The dimensions of the ordinary buffers, their extents, and the offsets of elements in them."""

    def __init__(
        self, by_name: Mapping[str, Axis], read: ReadOffset, *, ranges: Mapping[str, Expr]
    ) -> None:
        self._axes = by_name
        self._read = read
        self._ranges = ranges
        self.found: dict[Expr, Search] = {}
        """The variables of lets that hold the element that a search found, or -1; and the search."""
        self.counts = ElementCounts(by_name, read, self.found)
        self.position_conditions = PositionConditions()

    def dimensions(self, buffer: SparseBuffer) -> list[Dimension]:
        """Return the dimensions of the ordinary buffer."""
        groups: list[list[str]] = []
        for name in buffer.axes:
            first = len(groups)
            if is_varied(self._axes[name]):
                above = set(self._ancestors(name))
                first = next(number for number, group in enumerate(groups) if above & set(group))
            # A varied axis has fibers of different lengths, so everything between it and its ancestors is
            # one dimension.
            groups[first:] = [[*(member for group in groups[first:] for member in group), name]]
        return [Dimension(tuple(group), buffer) for group in groups]

    def extent(self, dimension: Dimension) -> Expr:
        """Return the number of elements that a dimension enumerates.

        Raises `UnsupportedError` (`lower.lower_buffers.missing_offsets`) if several varied axes have the same
        parent and the buffer has no `offsets`.
        """
        return product(
            self.counts.count(name, {}, dimension) for name in self.counts.roots(dimension)
        )

    def offset(self, dimension: Dimension, positions: Mapping[str, Expr]) -> Expr:
        """Return the offset of an element along a dimension, or -1 if a position is out of bounds along a
        fixed axis: the offset would be that of another element, and no bounds check would notice."""
        # The bounds check of the buffer itself covers a single axis.
        if len(dimension.axis_names) == 1:
            return positions[dimension.axis_names[0]]
        offset = self._offset(dimension, positions)
        return self._guard_offset(offset, dimension.axis_names, dimension.buffer, positions)

    def flattened_extent(self, buffer: SparseBuffer) -> Expr | None:
        """Return the number of positions along the last axis of a buffer; None unless it is fixed and
        flattened into the dimension of other axes."""
        name = buffer.axes[-1]
        if len(self.dimensions(buffer)[-1].axis_names) == 1 or is_varied(self._axes[name]):
            return None
        return add(width_of(self._axes[name]), index(_extra_positions(buffer, name)))

    def fibers(self, buffer: SparseBuffer, along: Sequence[Expr]) -> Iterator[Fiber]:
        """Yield the fiber of each varied axis in which the position along it should lie. A fiber can be
        looked up only if the positions along the axes before lie in their fibers."""
        positions = dict(zip(buffer.axes, along, strict=True))
        for dimension in self.dimensions(buffer):
            elements = self.counts.tree.elements(dimension.axis_names, positions)
            for name in dimension.axis_names:
                indptr = indptr_of(self._axes[name])
                if indptr is not None:
                    above = [ancestor for ancestor in self._ancestors(name) if ancestor in elements]
                    parent = self._guard_offset(elements[indptr.parent], above, buffer, positions)
                    start = self._read(indptr.handle, parent)
                    end = self._read(indptr.handle, add(parent, ONE))
                    yield Fiber(positions[name], start, end, _extra_positions(buffer, name))

    def _guard_offset(
        self,
        offset: Expr,
        axis_names: Sequence[str],
        buffer: SparseBuffer,
        positions: Mapping[str, Expr],
    ) -> Expr:
        """Return an offset along axes, or -1 if a position is out of bounds along a fixed one of them. The
        first axis needs no check: an offset out of bounds there is out of bounds of the buffer."""
        parts: list[Expr] = []
        for name in axis_names[1:]:
            axis, position = self._axes[name], positions[name]
            if is_varied(axis):
                continue
            width, extra = width_of(axis), _extra_positions(buffer, name)
            # Position 5 in a row of width 4 is the offset of position 1 in the next row.
            if not self._is_plain(position, width, extra):
                end = add(width, index(extra))
                parts += [
                    self.position_conditions.compare("ge", position, end),
                    self.position_conditions.compare("lt", position, end),
                ]
        inside = conjunction(*parts)
        return offset if inside is None else IfThenElse(inside, offset, index(-1))

    # Other operations: nothing is concluded from them.
    def _is_plain(self, position: Expr, width: Expr, extra: int) -> bool:
        value, limit = integer_value(position), integer_value(width)
        if value is not None and limit is not None:
            return 0 <= value < limit + extra
        match position:
            case Var(name=name):
                return self._ranges.get(name) == width
            case Binary(op="add", lhs=before, rhs=Const() as step):
                count = integer_value(step)
                return count in range(extra + 1) and self._is_plain(before, width, 0)
            case Binary(op="floormod", rhs=divisor):
                # A remainder is not negative for a positive divisor, and widths are not negative.
                return divisor == width
        return False

    def _offset(self, dimension: Dimension, positions: Mapping[str, Expr]) -> Expr:
        elements = self.counts.tree.elements(dimension.axis_names, positions)
        # A chain: the last element's number is the offset.
        # Branches multiply with what is beside them.
        *above, last = dimension.axis_names
        if self._ancestors(last) == above:
            return elements[last]
        offset: Expr = ZERO
        for level, name in enumerate(dimension.axis_names):
            before = self.counts.since_start(name, elements, positions[name], dimension)
            beside = [
                self.counts.count(later, elements, dimension)
                for later in dimension.axis_names[level + 1 :]
                if self._axes[later].parent not in dimension.axis_names[level:]
            ]
            offset = add(offset, product([before, *beside]))
        return offset

    def _ancestors(self, name: str) -> list[str]:
        """Return the ancestors of an axis, root first."""
        return [axis.name for axis in self.counts.tree.chain(self._axes[name])[:-1]]

    def offsets(self, buffer: SparseBuffer, name: str) -> Buffer | None:
        """Return the buffer of the offsets for varied axes with the same parent, under this name and with
        the dtype of their indptr; None if there are none."""
        for above, varied, _ in self._siblings(buffer):
            if buffer.offsets is not None:
                # One more than there are fibers, like every array of offsets.
                shape = (add(self.counts.tree.size(self._axes[above]), ONE),)
                indptr = indptr_of(self._axes[varied[0]])
                return Buffer(name, shape, indptr.dtype if indptr else "int64", buffer.offsets)
        return None

    def product_arrays(self, buffer: SparseBuffer) -> list[str]:
        """Return the indptr of the varied axes with the same parent, if the differences of the offsets are
        the products of their lengths; nothing if further axes are below them."""
        for _, varied, dimension in self._siblings(buffer):
            offsets = [indptr_of(self._axes[name]) for name in varied]
            if all(self.counts.below(name, dimension) == ([], ONE) for name in varied):
                return [indptr.handle for indptr in offsets if indptr is not None]
        return []

    def _siblings(self, buffer: SparseBuffer) -> Iterator[tuple[str, list[str], Dimension]]:
        """Yield each axis of a buffer that has several varied children, with these and their dimension."""
        for dimension in self.dimensions(buffer):
            for above in dimension.axis_names:
                varied, _ = self.counts.below(above, dimension)
                if len(varied) > 1:
                    yield above, varied, dimension


def _extra_positions(buffer: SparseBuffer, axis_name: str) -> int:
    """Return the number of positions after the end of each fiber that may be accessed: only along the
    last axis, as many as the extra elements of the buffer."""
    return buffer.extra_storage if axis_name == buffer.axes[-1] else 0
