"""Proves that the loads and searches of expressions are in bounds, at the position and the loop stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gossamer_ir.analysis.axes.element_numbers import offset_of_fiber
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.offsets import length_of
from gossamer_ir.core.axis_kinds import indptr_of, width_of
from gossamer_ir.core.build import ONE, add, index
from gossamer_ir.nodes import (
    Axis,
    Expr,
    Function,
    IfThenElse,
    Load,
    Node,
    Search,
    SparseBuffer,
    Unary,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.walk import children, collect, contains
from gossamer_support.items_by_name import items_by_name


class BoundedReads:
    """Proves, at a point of a function, that reads are in bounds.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import Buffer, Compare
    >>> i, n = index_var("i"), index_var("n")
    >>> function = Function("f", (), (), buffers=(Buffer("P", (n,), "int64", "p"),))
    >>> point = ProgramPoint(function)
    >>> reads = BoundedReads(function, point)
    >>> point.assume(Compare("ge", i, index(0)))
    >>> first = Load("P", (i,), "int64")
    >>> guarded = IfThenElse(Compare("lt", i, n), first, index(0))
    >>> reads.are_in_bounds(first), reads.are_in_bounds(guarded)
    (False, True)
    """

    def __init__(self, function: Function, point: ProgramPoint) -> None:
        self._function, self._point = function, point
        self._axes = items_by_name(function.axes)
        self._buffers = items_by_name(all_buffers(function))

    def are_in_bounds(self, *nodes: Node) -> bool:
        """Return whether every load and search in expressions is proved to be in bounds. The operands of an
        `IfThenElse` are checked under the condition that selects them."""
        # Only then do reads hold under different conditions.
        if contains(IfThenElse, *nodes):
            return all(map(self._is_proved_below, nodes))
        return all(map(self._is_proved, collect(READS, *nodes)))

    def extents(self, buffer_name: str, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the extents of the dimensions of an access, up to the first one that is unknown. The indices
        of a search are its prefix and any position in the range that it covers."""
        declared = self._buffers[buffer_name]
        if isinstance(declared, SparseBuffer):
            return tuple(self._fibers(declared, indices))
        return declared.shape

    def _is_proved_below(self, node: Node) -> bool:
        if not isinstance(node, IfThenElse):
            is_own = not isinstance(node, READS) or self._is_proved(node)
            return is_own and all(map(self._is_proved_below, children(node)))
        sides = (node.condition, node.if_true), (Unary("not", node.condition), node.if_false)
        return self._is_proved_below(node.condition) and all(
            self._is_proved_under(condition, side) for condition, side in sides
        )

    def _is_proved_under(self, condition: Expr, node: Expr) -> bool:
        with self._point.scope():
            self._point.assume(condition)
            return self._is_proved_below(node)

    # Other expressions: those that read memory fail the test of `READS`.
    def _is_proved(self, read: Load | Search) -> bool:
        """Return whether the element, or the whole range that is searched, is proved to be in bounds."""
        indices = read.indices if isinstance(read, Load) else (*read.prefix, read.begin)
        extents = self.extents(read.buffer, indices)
        # An unknown extent cannot be compared.
        if len(extents) != len(indices):
            return False
        bounds = [*bounds_of_read(read, extents)]
        if isinstance(read, Search) and self._is_window(read, extents[-1]):
            # The window is proved as a whole, so its ends need no proof of their own: begin may be beyond
            # the end.
            del bounds[-2:]
        return all(self._point.is_in_range(at, extent) for at, extent in bounds)

    def _is_window(self, search: Search, extent: Expr) -> bool:
        """Return whether a search is proved to read nothing outside 0, ..., extent - 1. If begin > end, the
        range is empty, so `begin` needs no upper bound."""
        ends_inside = self._point.is_at_most(search.end, extent)
        return ends_inside and self._point.is_nonnegative(search.begin)

    def _fibers(self, buffer: SparseBuffer, indices: Sequence[Expr]) -> Iterator[Expr]:
        positions = dict(zip(buffer.axes, indices, strict=True))
        for name in buffer.axes:
            extent = self._fiber(self._axes[name], positions)
            if extent is None:
                return
            is_last = name == buffer.axes[-1]
            yield add(extent, index(buffer.extra_storage)) if is_last else extent

    def _fiber(self, axis: Axis, positions: Mapping[str, Expr]) -> Expr | None:
        """Return the number of positions of an axis below positions of its ancestors, or None."""
        indptr = indptr_of(axis)
        if indptr is None:
            return width_of(axis)
        offset = offset_of_fiber(self._function, indptr, positions)
        return None if offset is None else length_of(offset)


def bounds_of_read(read: Load | Search, shape: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Yield the indices of a read, each with its exclusive upper bound; for a search the prefix, begin and
    end."""
    if isinstance(read, Load):
        yield from zip(read.indices, shape, strict=True)
        return
    *outer, last = shape
    yield from zip(read.prefix, outer, strict=True)
    yield from ((at, add(last, ONE)) for at in (read.begin, read.end))
