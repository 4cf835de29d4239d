"""The storage layout of sparse buffers: the nested enumeration of their axes in order.

This implements the definition, by which the offset of an element is the number of elements enumerated
before it. It shares no formulas with the lowering, so that it can check them.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, TypeAlias

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret.interpreter_errors import out_of_bounds_error
from gossamer_ir.interpret.memory.levels import Level, Levels
from gossamer_ir.nodes import SparseBuffer

ElementNumbers: TypeAlias = tuple[int, ...]
ElementAddress: TypeAlias = tuple[tuple[Any, ...], tuple[Any, ...] | None]
"""The positions of an element, and its indices in the array."""


class Layout:
    """The layout of one buffer; `size` is its number of elements, without extra storage.

    `addresses` has those that were found for coordinates. `_tails[d]` is the number of elements below one
    element of axis d - 1 if it is constant. An axis is rigid if no axis that depends on it varies, so that
    all its elements have equally many below.
    """

    def __init__(self, buffer: SparseBuffer, levels: Levels) -> None:
        self.name = buffer.name
        self.levels: tuple[Level, ...] = tuple(levels[axis] for axis in buffer.axes)
        self.parents = tuple(_parent_index(buffer, levels[axis]) for axis in buffer.axes)
        self._extra = buffer.extra_storage
        self._is_rigid = tuple(not self._has_varied_below(d) for d in range(len(self.levels)))
        self._sums: dict[tuple[int, ElementNumbers], list[int]] = {}
        self._offsets: dict[tuple[Any, ...], tuple[int] | None] = {}
        self.addresses: dict[tuple[Any, ...], ElementAddress | None] = {}
        self._tails = self._fixed_tails()
        self.size = self._size(0, ())

    @property
    def fixed_shape(self) -> tuple[int, ...] | None:
        """The shape of the array if no axis is varied, else None.

        Also None for buffers of several axes with extra storage, which are one-dimensional.
        """
        if self._tails[0] is None or (self._extra and len(self.levels) > 1):
            return None
        shape = tuple(level.count(0) for level in self.levels)
        return (shape[0] + self._extra,) if self._extra else shape

    def parent_element(self, axis: int, elements: Any) -> int:
        """Return the element that selects the fiber of an axis, given those of the axes before it."""
        parent = self.parents[axis]
        return 0 if parent is None else int(elements[parent])

    def locate(self, positions: tuple[Any, ...]) -> tuple[int] | None:
        """Return the offset of the element at some positions, None if one is outside of a varied fiber (a
        miss).

        A position outside of a fixed axis is an error unless there is a miss on another axis that is
        found without reading an `indptr` at that position.
        """
        # Programs access most elements several times.
        if positions not in self._offsets:
            self._offsets[positions] = self._locate(positions)
        return self._offsets[positions]

    def _locate(self, positions: tuple[Any, ...]) -> tuple[int] | None:
        elements: list[int] = []
        beyond: list[int] = []
        offset = 0
        for axis, (level, position) in enumerate(zip(self.levels, positions, strict=True)):
            # Counting the fiber reads an `indptr` at an element that does not exist.
            if self.parents[axis] in beyond and level.width is None:
                self.require_inside(positions, beyond[0], elements)
            parent = self.parent_element(axis, elements)
            if self.parents[axis] in beyond or not self.is_inside(positions, axis, elements):
                if level.width is None:
                    return None
                beyond.append(axis)
            # Past a miss there is no offset, and computing one could read out of bounds.
            if not beyond:
                offset += self._elements_before(axis, tuple(elements), int(position))
            elements.append(level.first(parent) + int(position))
        if beyond:
            self.require_inside(positions, beyond[0], elements)
        return (offset,)

    def require_inside(self, positions: Any, axis: int, elements: list[int]) -> None:
        """Raise an out-of-bounds error if a position is outside of its fiber.

        `elements` are those of the axes before `axis`.
        """
        if not self.is_inside(positions, axis, elements):
            counts = [self._count(before, elements) for before in range(axis + 1)]
            raise out_of_bounds_error(self.name, positions, counts)

    def is_inside(self, positions: Any, axis: int, elements: list[int]) -> bool:
        """Return whether a position is in its fiber; `elements` are those of the axes before `axis`."""
        return bool(0 <= positions[axis] < self._count(axis, elements))

    def _count(self, axis: int, elements: list[int]) -> int:
        extra = self._extra if axis == len(self.levels) - 1 else 0
        return self.levels[axis].count(self.parent_element(axis, elements)) + extra

    def _has_varied_below(self, axis: int) -> bool:
        below = {axis}
        for later in range(axis + 1, len(self.levels)):
            if self.parents[later] in below:
                if self.levels[later].width is None:
                    return True
                below.add(later)
        return False

    def _fixed_tails(self) -> list[int | None]:
        tails: list[int | None] = [1]
        for level in reversed(self.levels):
            tail = tails[-1]
            tails.append(None if tail is None or level.width is None else tail * level.width)
        return tails[::-1]

    def _elements_before(self, axis: int, elements: ElementNumbers, position: int) -> int:
        if position == 0:
            return 0
        # Prefix sums instead of a product, and cached: fibers below different elements differ in size.
        if not self._is_rigid[axis]:
            sums = self._sums_of(axis, elements)
            return sums[min(position, len(sums) - 1)]
        return position * self._size_under(axis, elements, 0)

    def _size(self, axis: int, elements: ElementNumbers) -> int:
        tail = self._tails[axis]
        if tail is not None:
            return tail
        if not self._is_rigid[axis]:
            return self._sums_of(axis, elements)[-1]
        count = self.levels[axis].count(self.parent_element(axis, elements))
        return count * self._size_under(axis, elements, 0) if count else 0

    def _size_under(self, axis: int, elements: ElementNumbers, position: int) -> int:
        first = self.levels[axis].first(self.parent_element(axis, elements))
        return self._size(axis + 1, (*elements, first + position))

    def _sums_of(self, axis: int, elements: ElementNumbers) -> list[int]:
        sums = self._sums.get((axis, elements))
        if sums is None:
            count = self.levels[axis].count(self.parent_element(axis, elements))
            sizes = (self._size_under(axis, elements, position) for position in range(count))
            sums = self._sums[axis, elements] = list(accumulate(sizes, initial=0))
        return sums


def _parent_index(buffer: SparseBuffer, level: Level) -> int | None:
    dimension = buffer.axes.index(level.name)
    if level.parent in buffer.axes[:dimension]:
        return buffer.axes.index(level.parent)
    if level.parent is None or (level.width is not None and level.indices is None):
        return None
    raise UnsupportedError(
        "interpret.missing_parent",
        f"Buffer '{buffer.name}' has axis '{level.name}' without its parent '{level.parent}' "
        "before it.",
    )
