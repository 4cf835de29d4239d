"""Fused axes: several axes iterated as one loop over the elements of the last one.

The position along each axis is computed from the element of the last one. The parent of an element is
found by a binary search in indptr (the last fiber that starts at or before the element), or by a
division if all fibers have the same length. This is the decompression of fused axes of SparseTIR
(section 3.3 of the paper), except that the search stays in bounds whatever the array holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from gossamer_ir.core.axis_kinds import is_varied, width_of
from gossamer_ir.core.build import ONE, ZERO, add, floordiv, integer_value, sub
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Axis, Binary, Compare, Expr, If, Node, Search, Stmt
from gossamer_ir.traversal.walk import children
from gossamer_lower.axes.index_buffers import IndexBuffers


class FusedAxes(msgspec.Struct, frozen=True):
    """A chain of axes, each the child of the one before, below one element `parent` (None: of all)."""

    axes: tuple[Axis, ...]
    buffers: IndexBuffers
    parent: Expr | None

    def extent(self) -> Expr:
        """Return the number of elements of the last axis below `parent`."""
        low, high = list(self._ranges())[-1]
        return sub(high, low)

    def positions(self, count: Expr) -> tuple[Expr, ...]:
        """Return the positions along the axes of the element number `count`, from 0."""
        ranges = list(self._ranges())
        elements = [add(ranges[-1][0], count)]
        for (above, axis), element in zip(
            reversed(list(pairwise(self.axes))), reversed(ranges[:-1]), strict=True
        ):
            elements.insert(0, self._element_above(above, axis, elements[0], element))
        return tuple(self._relative(elements))

    def _ranges(self) -> Iterator[tuple[Expr, Expr]]:
        """Yield the range of elements of each axis: its first element and its end (exclusive)."""
        root, *below = self.axes
        tree = self.buffers.tree
        low: Expr = ZERO
        high = tree.size(root)
        if self.parent is not None:
            low = tree.first_element(root, self.parent)
            high = tree.first_element(root, add(self.parent, ONE))
        yield low, high
        for axis in below:
            if self.parent is None:
                high = tree.size(axis)
            else:
                low, high = tree.first_element(axis, low), tree.first_element(axis, high)
            yield low, high

    def _element_above(
        self, above: Axis, axis: Axis, element: Expr, bounds: tuple[Expr, Expr]
    ) -> Expr:
        if not is_varied(axis):
            return floordiv(element, width_of(axis))
        low, high = bounds
        begin = add(low, ONE)
        # One fiber: a search in an empty window is not needed, and would have no size.
        if begin == high:
            return low
        buffer = self.buffers.flat_indptr(axis).name
        # The last fiber that starts at or before the element.
        # "upper" skips empty fibers, which start at the same offset.
        return sub(Search("upper", buffer, (), begin, high, element), ONE)

    def _relative(self, elements: Sequence[Expr]) -> Iterator[Expr]:
        tree = self.buffers.tree
        if self.parent is None:
            yield elements[0]
        else:
            yield sub(elements[0], tree.first_element(self.axes[0], self.parent))
        for axis, above, element in zip(self.axes[1:], elements, elements[1:], strict=False):
            if is_varied(axis):
                yield sub(element, tree.first_element(axis, above))
            else:
                yield Binary("floormod", element, width_of(axis))


# --- iterations


def where_searchable(nest: Stmt) -> Stmt:
    """Return the loop nest under the condition that the arrays searched in it are not empty.

    If an axis has no elements, the searches for them must not run, and nothing else prevents them.
    Conditions that an inner nest already checks are left to it.
    """
    condition: Expr | None = None
    for search in _searches(nest, frozenset()):
        count = integer_value(search.end)
        part = Compare("gt", search.end, ZERO)
        if (count is None or count <= 0) and part not in conjuncts(condition):
            condition = conjunction(condition, part)
    return nest if condition is None else If(condition, (nest,))


def _searches(node: Node, conditions: frozenset[Expr]) -> Iterator[Search]:
    """Yield searches over all elements of an axis that may be empty here.

    `conditions` are the enclosing ones.
    """
    if (
        isinstance(node, Search)
        and node.begin == ONE
        and Compare("gt", node.end, ZERO) not in conditions
    ):
        yield node
    if isinstance(node, If):
        inside = conditions | set(conjuncts(node.condition))
        for stmt in node.then_body:
            yield from _searches(stmt, inside)
        for part in (node.condition, *node.else_body):
            yield from _searches(part, conditions)
        return
    for child in children(node):
        yield from _searches(child, conditions)
