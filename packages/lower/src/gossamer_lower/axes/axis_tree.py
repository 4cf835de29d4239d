"""The numbers of elements: those of an axis are counted over all its fibers, from 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gossamer_ir.core.axis_kinds import indptr_of, is_varied, parent_value, width_of
from gossamer_ir.core.build import ZERO, mul
from gossamer_ir.nodes import Axis, Expr
from gossamer_lower.axes.fiber_positions import FoundSearches, element_number
from gossamer_support.items_by_name import items_by_name


class AxisTree:
    """The axes of a function by name, each below its parent.

    `read_offset` returns the offset of the fiber of a varied axis below an element of its parent: how the
    array of offsets is read depends on the stage. `searches` are the variables that hold elements.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import CompressedVaried, DenseFixed, Load
    >>> rows = DenseFixed("I", index_var("m"))
    >>> columns = CompressedVaried("J", "I", index_var("n"), None, "indptr", "indices")
    >>> tree = AxisTree((rows, columns), lambda axis, parent: Load("P", (parent,), "int64"))
    >>> [axis.name for axis in tree.chain(columns)]
    ['I', 'J']
    >>> tree.size(columns) == Load("P", (index_var("m"),), "int64")
    True
    """

    def __init__(
        self,
        axes: Iterable[Axis],
        read_offset: Callable[[Axis, Expr], Expr],
        searches: FoundSearches | None = None,
    ) -> None:
        self._axes = items_by_name(axes)
        self._found: FoundSearches = {} if searches is None else searches
        self._read_offset = read_offset

    def axis(self, name: str) -> Axis:
        """Return the axis of this name."""
        return self._axes[name]

    def chain(self, axis: Axis) -> tuple[Axis, ...]:
        """Return the axis and its ancestors, root first."""
        return (axis,) if axis.parent is None else (*self.chain(self._axes[axis.parent]), axis)

    def size(self, axis: Axis) -> Expr:
        """Return the number of elements of an axis, over all fibers."""
        indptr = indptr_of(axis)
        if indptr is not None and indptr.nnz is not None:
            return indptr.nnz
        if axis.parent is None:
            return width_of(axis)
        # The end of the parent's last fiber, which is the last offset of a varied axis.
        return self.first_element(axis, self.size(self._axes[axis.parent]))

    def first_element(self, axis: Axis, parent: Expr) -> Expr:
        """Return the first element of the fiber below an element of the parent."""
        if is_varied(axis):
            return self._read_offset(axis, parent)
        return mul(parent, width_of(axis))

    def elements(self, names: Iterable[str], positions: Mapping[str, Expr]) -> dict[str, Expr]:
        """Return the elements at positions along axes, each of which comes after its ancestors. If the
        parent of an axis is not among them, there is one fiber, which begins at element 0."""
        elements: dict[str, Expr] = {}
        for name in names:
            start = self.start_of_fiber(self._axes[name], elements)
            elements[name] = element_number(start, positions[name], self._found)
        return elements

    def start_of_fiber(self, axis: Axis, elements: Mapping[str, Expr]) -> Expr:
        """Return the first element of the fiber that the element of the parent selects; 0 without one."""
        parent = parent_value(axis, elements)
        return ZERO if parent is None else self.first_element(axis, parent)
