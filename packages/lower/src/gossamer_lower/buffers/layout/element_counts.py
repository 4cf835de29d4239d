"""Numbers of elements of a dimension below elements of its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from gossamer_ir.core.axis_kinds import indptr_of, is_varied, parent_value, width_of
from gossamer_ir.core.build import ONE, ZERO, add, mul, product, sub
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Axis, Expr, SparseBuffer
from gossamer_lower.axes.axis_tree import AxisTree
from gossamer_lower.axes.fiber_positions import FoundSearches

ReadOffset: TypeAlias = Callable[[str, Expr], Expr]
"""Reads an element, as int64, of the array of offsets with this handle."""


class Dimension(msgspec.Struct, frozen=True):
    """One dimension of the ordinary buffer that replaces `buffer`: the axes that it enumerates."""

    axis_names: tuple[str, ...]
    buffer: SparseBuffer


class ElementCounts:
    """Numbers of elements along the axes that a dimension enumerates. `searches` are the variables that hold
    elements."""

    def __init__(
        self, by_name: Mapping[str, Axis], read: ReadOffset, searches: FoundSearches
    ) -> None:
        self.tree = AxisTree(by_name.values(), self._read_offset, searches)
        self._axes = by_name
        self._read = read

    def _read_offset(self, axis: Axis, parent: Expr) -> Expr:
        indptr = indptr_of(axis)
        assert indptr is not None  # the axis is varied
        return self._read(indptr.handle, parent)

    def _elements_before(self, name: str, element: Expr, dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension below the elements of an axis before this one."""
        varied, width = self.below(name, dimension)
        # All fibers below have one size.
        if not varied:
            return mul(element, width)
        # Products of varying lengths have no closed form:
        # their prefix sums are an array of their own.
        if len(varied) > 1:
            return mul(self._read(_offsets_of(dimension, varied), element), width)
        start = self.tree.first_element(self._axes[varied[0]], element)
        below = self._elements_before(varied[0], start, dimension)
        return mul(below, width)

    def since_start(
        self, name: str, elements: Mapping[str, Expr], position: Expr, dimension: Dimension
    ) -> Expr:
        """Return the number of elements of the dimension below the positions of a fiber before this one."""
        if not self.below(name, dimension)[0]:
            return mul(position, self.below(name, dimension)[1])
        before, start = (
            self._elements_before(name, elements[name], dimension),
            self.tree.start_of_fiber(self._axes[name], elements),
        )
        # The fiber is the first one, so nothing is before it.
        if start == ZERO:
            return before
        return sub(before, self._elements_before(name, start, dimension))

    def _total(self, name: str, dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension below all elements of an axis."""
        varied, width = self.below(name, dimension)
        # The total of the only varied child, since its fibers follow each other without gaps.
        if len(varied) == 1:
            return mul(self._total(varied[0], dimension), width)
        return self._elements_before(name, self.tree.size(self._axes[name]), dimension)

    def count(self, name: str, elements: Mapping[str, Expr], dimension: Dimension) -> Expr:
        """Return the number of elements of the dimension in one fiber of an axis."""
        axis = self._axes[name]
        parent = parent_value(axis, elements)
        if not self._varies(name, dimension):
            return mul(width_of(axis), self.below(name, dimension)[1])
        if parent is None:
            return self._total(name, dimension)
        first = self.tree.first_element(axis, parent)
        end = self.tree.first_element(axis, add(parent, ONE))
        low = self._elements_before(name, first, dimension)
        return sub(self._elements_before(name, end, dimension), low)

    def below(self, name: str, dimension: Dimension) -> tuple[list[str], Expr]:
        """Return the children of an axis that are varied or have varied descendants, and the product of
        the widths of the others."""
        children = [axis for axis in dimension.axis_names if self._axes[axis].parent == name]
        varied = [child for child in children if self._varies(child, dimension)]
        fixed = [child for child in children if child not in varied]
        widths = (
            mul(width_of(self._axes[child]), self.below(child, dimension)[1]) for child in fixed
        )
        return varied, product(widths)

    def _varies(self, name: str, dimension: Dimension) -> bool:
        return is_varied(self._axes[name]) or bool(self.below(name, dimension)[0])

    def roots(self, dimension: Dimension) -> list[str]:
        return [
            name
            for name in dimension.axis_names
            if self._axes[name].parent not in dimension.axis_names
        ]


def _offsets_of(dimension: Dimension, varied: list[str]) -> str:
    if dimension.buffer.offsets is None:
        raise UnsupportedError(
            "lower.lower_buffers.missing_offsets",
            f"The buffer '{dimension.buffer.name}' has several varied axes with the same parent "
            f"({', '.join(varied)}), but no offsets.",
            hint="Give the prefix sums of the products of their lengths as offsets=.",
        )
    return dimension.buffer.offsets
