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

from gossamer_ir.core import build
from gossamer_ir.core.annotations import PREPROCESS, is_preprocess
from gossamer_ir.core.axis_kinds import is_full, is_varied, width_of
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.core.iteration_axes import attached_to, iterated_axes
from gossamer_ir.nodes import (
    AttachAxis,
    Axis,
    Binary,
    Compare,
    Expr,
    FuseAxes,
    If,
    Iteration,
    Node,
    OverAxis,
    Search,
    Stmt,
)
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.substitute import substitute_body
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
        return build.sub(high, low)

    def positions(self, count: Expr) -> tuple[Expr, ...]:
        """Return the positions along the axes of the element number `count`, from 0."""
        ranges = list(self._ranges())
        elements = [build.add(ranges[-1][0], count)]
        for (above, axis), element in zip(
            reversed(list(pairwise(self.axes))), reversed(ranges[:-1]), strict=True
        ):
            elements.insert(0, self._element_above(above, axis, elements[0], element))
        return tuple(self._relative(elements))

    def _ranges(self) -> Iterator[tuple[Expr, Expr]]:
        """Yield the range of elements of each axis: its first element and its end (exclusive)."""
        root, *below = self.axes
        tree = self.buffers.tree
        low: Expr = build.ZERO
        high = tree.size(root)
        if self.parent is not None:
            low = tree.first_element(root, self.parent)
            high = tree.first_element(root, build.add(self.parent, build.ONE))
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
            return build.floordiv(element, width_of(axis))
        low, high = bounds
        begin = build.add(low, build.ONE)
        # One fiber: a search in an empty window is not needed, and would have no size.
        if begin == high:
            return low
        buffer = self.buffers.flat_indptr(axis).name
        # The last fiber that starts at or before the element.
        # "upper" skips empty fibers, which start at the same offset.
        return build.sub(Search("upper", buffer, (), begin, high, element), build.ONE)

    def _relative(self, elements: Sequence[Expr]) -> Iterator[Expr]:
        tree = self.buffers.tree
        if self.parent is None:
            yield elements[0]
        else:
            yield build.sub(elements[0], tree.first_element(self.axes[0], self.parent))
        for axis, above, element in zip(self.axes[1:], elements, elements[1:], strict=False):
            if is_varied(axis):
                yield build.sub(element, tree.first_element(axis, above))
            else:
                yield Binary("floormod", element, width_of(axis))


# --- iterations


def init_visits_others(node: Iteration, buffers: IndexBuffers) -> bool:
    """Return whether the domain of the init differs from that of the loop nest.

    It is larger below fused axes: an empty row has no element there, but is initialized. It is smaller
    than a loop of fixed extent whose parent, on which the loop does not depend, has no elements.
    """
    kept = _axes_for_init(node, buffers)
    names = {var for _, var in kept}
    indexed = _indexed_axes(node)
    return any(
        not names.issuperset(item.vars)
        for item in iterated_axes(node)
        if isinstance(item.axis, FuseAxes)
    ) or any(_is_loose(buffers.tree.axis(item.axis), indexed) for item, _ in kept)


def _is_loose(axis: Axis, indexed: set[str]) -> bool:
    return is_full(axis) and axis.parent not in (None, *indexed)


def _indexed_axes(node: Iteration) -> set[str]:
    """Return the axes whose variables occur in the init."""
    names = {name for stmt in node.init for name in free_vars(stmt)}
    return {item.axis for item, var in _unfused(node) if var in names}


def with_init_apart(
    node: Iteration, buffers: IndexBuffers, namer: Namer
) -> tuple[Iteration, Iteration]:
    """Return the iteration split in two: its init, over the elements that it visits, and its updates."""
    kept = _axes_for_init(node, buffers)
    names = {var: build.index_var(namer.fresh(f"{var}_init")) for _, var in kept}
    init = Iteration(
        namer.fresh(f"{node.name}_init"),
        tuple(item for item, _ in kept),
        "S" * len(kept),
        tuple(names[var].name for _, var in kept),
        substitute_body(node.init, names),
        annotations=((PREPROCESS, True),) if is_preprocess(node) else (),
    )
    return init, msgspec.structs.replace(node, init=())


def _axes_for_init(
    node: Iteration, buffers: IndexBuffers
) -> list[tuple[OverAxis | AttachAxis, str]]:
    """Return the axes that the init uses and their ancestors, unfused, with their variables."""
    indexed = _indexed_axes(node)
    kept: list[tuple[OverAxis | AttachAxis, str]] = []
    parents: set[str | None] = set()
    for item, var in reversed(list(_unfused(node))):
        if item.axis in indexed or item.axis in parents:
            kept.insert(0, (item, var))
            axis = buffers.tree.axis(item.axis)
            parents.add(attached_to(item) or axis.parent)
    return kept


def _unfused(node: Iteration) -> Iterator[tuple[OverAxis | AttachAxis, str]]:
    for item in iterated_axes(node):
        entry = item.axis
        unfused = (
            [OverAxis(name) for name in entry.axes] if isinstance(entry, FuseAxes) else [entry]
        )
        yield from zip(unfused, item.vars, strict=True)


def where_searchable(nest: Stmt) -> Stmt:
    """Return the loop nest under the condition that the arrays searched in it are not empty.

    If an axis has no elements, the searches for them must not run, and nothing else prevents them.
    Conditions that an inner nest already checks are left to it.
    """
    condition: Expr | None = None
    for search in _searches(nest, frozenset()):
        count = build.integer_value(search.end)
        part = Compare("gt", search.end, build.ZERO)
        if (count is None or count <= 0) and part not in conjuncts(condition):
            condition = conjunction(condition, part)
    return nest if condition is None else If(condition, (nest,))


def _searches(node: Node, given: frozenset[Expr]) -> Iterator[Search]:
    """Yield searches over all elements of an axis that may be empty here.

    `given` are the enclosing conditions.
    """
    if (
        isinstance(node, Search)
        and node.begin == build.ONE
        and Compare("gt", node.end, build.ZERO) not in given
    ):
        yield node
    if isinstance(node, If):
        inside = given | set(conjuncts(node.condition))
        for stmt in node.then_body:
            yield from _searches(stmt, inside)
        for part in (node.condition, *node.else_body):
            yield from _searches(part, given)
        return
    for child in children(node):
        yield from _searches(child, given)
