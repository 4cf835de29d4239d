"""Translates the coordinates of a buffer access to positions along the axes of the buffer.

Three cases: where an iterator of the same axis walks the same fiber, the position is the iterator's own.
Along a dense axis, a coordinate is a position. Along a compressed axis, an exact search among the
coordinates of the fiber finds the position; if the search finds none, the element is absent. Along a bitmask,
a bit tells whether the element is present, and its position is the number of bits below that are set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.axis_kinds import indices_of, is_full, is_padded
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.conditions import in_range
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Axis, Compare, Expr, IfThenElse, Relation, Search
from gossamer_lower.axes.bitmask_slots import has_slot, slot_of_coordinate
from gossamer_lower.axes.element_location import ElementLocation
from gossamer_lower.axes.index_buffers import IndexBuffers
from gossamer_lower.iterations.nests.access_positions import AccessPositions
from gossamer_lower.iterations.nests.lookup_lets import LookupLets


class AxisIterator(msgspec.Struct, frozen=True):
    """An iterated axis: its position, and the positions along its ancestors, root first. `above` is None
    for a dense axis that is iterated without its parent."""

    axis: Axis
    position: Expr
    above: tuple[Expr, ...] | None = ()

    def path(self) -> tuple[Expr, ...] | None:
        """Return the positions along the ancestors and the axis."""
        return None if self.above is None else (*self.above, self.position)


AxisIters: TypeAlias = dict[str, AxisIterator]
"""The iterators of the enclosing iterations by their variables; of one axis, the innermost is the last."""


class AccessIndex(msgspec.Struct, frozen=True):
    """An index of an access: its coordinate, and the iterator if the index is just its variable."""

    coordinate: Expr
    iterator: AxisIterator | None = None


class CoordinateTranslator:
    """Translates coordinates to positions along the axes of one function."""

    def __init__(self, buffers: IndexBuffers, relations: Iterable[Relation]) -> None:
        self._buffers = buffers
        self._subsets = {
            (relation.left, relation.right) for relation in relations if relation.kind == "subset"
        }

    def coordinate(self, iterator: AxisIterator) -> Expr:
        """Return the coordinate at the position of an iterator."""
        axis, path = iterator.axis, iterator.path()
        # Without stored coordinates, these are the positions.
        if indices_of(axis) is None or path is None:
            return iterator.position
        return self._buffers.coordinate(axis, path)

    def location(
        self,
        axis_names: Sequence[str],
        indices: Sequence[AccessIndex],
        *,
        of: str,
        lets: LookupLets,
        conditions: Iterable[Expr] = (),
    ) -> ElementLocation:
        """Return where the element of the buffer `of`, over these axes, is stored; `conditions` are those
        that must hold before it is looked up. A position below which others are looked up becomes one of
        `lets`.

        Raises `UnsupportedError` (`lower.lower_iterations.unsorted_lookup`) if a coordinate must be searched
        for in an axis that is not sorted or has duplicates.
        """
        positions = AccessPositions(lets, conditions)
        walked: dict[str, AccessIndex] = {}
        for name, index in zip(axis_names, indices, strict=True):
            axis = self._buffers.tree.axis(name)
            chain = [member.name for member in self._buffers.tree.chain(axis)]
            walked[name] = index
            path = [walked[member] for member in chain]
            above = positions.along(chain[:-1])
            # An own position is used as it is; for another one, those above occur several times.
            if not is_full(axis) and not self._is_walked(axis, above, index):
                above = positions.bound_along(chain[:-1])
            positions.begin(name)
            location = positions.location
            positions.add(name, self._position(axis, above, path=path, location=location, of=of))
        return positions.whole()

    def inside(self, axis_names: Sequence[str], indices: Sequence[AccessIndex]) -> Iterator[Expr]:
        """Yield the bounds of the coordinates along dense axes that are parents of other axes of the
        buffer. Under them, the index arrays read to find an element are in bounds."""
        parents = {self._buffers.tree.axis(name).parent for name in axis_names}
        for name, index in zip(axis_names, indices, strict=True):
            axis = self._buffers.tree.axis(name)
            is_own = index.iterator is not None and self._is_same(axis, index.iterator.axis)
            if is_full(axis) and name in parents and not is_own:
                yield from self._fiber_bounds(axis, (), index)

    def attached_position(
        self,
        parent: Axis,
        above: tuple[Expr, ...],
        *,
        over: AxisIterator,
        location: ElementLocation,
    ) -> Expr:
        """Return the position along `parent` of the coordinate of `over`, in the fiber at the positions
        `above`. A coordinate outside a dense axis is absent."""
        coordinate = self.coordinate(over)
        is_below = over.axis.length == parent.length and not is_padded(over.axis)
        if is_full(parent) and not is_below:
            is_inside = Compare("lt", coordinate, parent.length)
            location.add(is_inside)
        index = AccessIndex(coordinate, over)
        return self._position(parent, above, path=[index], location=location, of=parent.name)

    def _position(
        self,
        axis: Axis,
        above: tuple[Expr, ...],
        *,
        path: Sequence[AccessIndex],
        location: ElementLocation,
        of: str,
    ) -> Expr:
        """Return the position along an axis of the last index of a path, in the fiber at the positions
        `above`; add to `location` the conditions under which the element is present."""
        coordinate, iterator = path[-1].coordinate, path[-1].iterator
        if is_full(axis):
            return coordinate
        # The iterator's position is known without a search.
        if iterator is not None and self._is_walked(axis, above, path[-1]):
            return iterator.position
        indices = indices_of(axis)
        if indices is None:
            location.add(*self._fiber_bounds(axis, above, path[-1]))
            return coordinate
        if indices.is_mask:
            word = self._buffers.word(axis, above)
            location.add(has_slot(word, coordinate))
            return slot_of_coordinate(word, coordinate)
        if not indices.is_searchable:
            raise _unsorted_error(axis, of)
        end = self._buffers.extent(axis, above)
        search = Search("exact", self._buffers.indices(axis), above, ZERO, end, coordinate)
        # A declared subset makes every search a hit, so no check is needed.
        if not self._is_subset(axis, path):
            location.add(*self._hit_conditions(axis, search, path[-1]))
        return search

    def _hit_conditions(self, axis: Axis, search: Search, index: AccessIndex) -> tuple[Expr, ...]:
        hit = Compare("ge", search, ZERO)
        # Unused slots hold the coordinate `length`, which a search for `length` would find.
        if not is_padded(axis) or _is_below(index, axis.length):
            return (hit,)
        return (hit, Compare("ne", search.value, axis.length))

    def _fiber_bounds(
        self, axis: Axis, above: tuple[Expr, ...], index: AccessIndex
    ) -> tuple[Expr, ...]:
        both = in_range(index.coordinate, self._buffers.extent(axis, above))
        if index.iterator is not None or (integer_value(index.coordinate) or -1) > 0:
            return both[1:]
        return both

    # --- elements that are known to be present

    def _is_walked(self, axis: Axis, above: tuple[Expr, ...], index: AccessIndex) -> bool:
        """Return whether an index is that of an iterator which walks the very fiber at the positions
        `above`."""
        iterator = index.iterator
        return (
            iterator is not None and iterator.above == above and self._is_same(axis, iterator.axis)
        )

    def _is_subset(self, axis: Axis, path: Sequence[AccessIndex]) -> bool:
        """Return whether every element that the iterators walk is an element of `axis`: they walk all
        axes of the path, and a declared relation says that theirs is a subset."""
        if len(path) != len(self._buffers.tree.chain(axis)):
            return False
        iters = [index.iterator for index in path]
        last = iters[-1]
        if last is None or any(iterator is None for iterator in iters):
            return False
        walked = self._buffers.tree.chain(last.axis)
        is_one_path = len(walked) == len(path) and all(
            iterator is not None
            and iterator.axis == axis
            and iterator.path() == (last.path() or ())[: depth + 1]
            for depth, (iterator, axis) in enumerate(zip(iters, walked, strict=False))
        )
        return is_one_path and (last.axis.name, axis.name) in self._subsets

    def _is_same(self, axis: Axis, other: Axis) -> bool:
        """Return whether two axes are the same, or equal in all but their names and over the same arrays."""
        if axis.name == other.name:
            return True
        if axis.parent is None or other.parent is None:
            return axis.parent == other.parent and _rename_axis(axis, other) == other
        parents = (self._buffers.tree.axis(axis.parent), self._buffers.tree.axis(other.parent))
        return _rename_axis(axis, other) == other and self._is_same(*parents)


def _unsorted_error(axis: Axis, buffer_name: str) -> UnsupportedError:
    """Return the error for an axis that cannot be searched. A binary search needs the order, and with
    duplicates it would find any one of several elements."""
    return UnsupportedError(
        "lower.lower_iterations.unsorted_lookup",
        f"An access of '{buffer_name}' searches for a coordinate in the axis '{axis.name}', which is not "
        "sorted and unique.",
        hint=f"Iterate '{axis.name}' itself, or sort it and combine its duplicates.",
    )


def _rename_axis(axis: Axis, other: Axis) -> Axis:
    return replace(axis, name=other.name, parent=other.parent)


def _is_below(index: AccessIndex, length: Expr) -> bool:
    """Return whether an index is the coordinate of an iterator over an axis of this length, and thus less
    than it."""
    return index.iterator is not None and index.iterator.axis.length == length


def value_if(condition: Expr | None, value: Expr, *, otherwise: Expr) -> Expr:
    """Return the value if the condition holds, else `otherwise`."""
    return value if condition is None else IfThenElse(condition, value, otherwise)
