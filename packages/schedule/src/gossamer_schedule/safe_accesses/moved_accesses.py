"""Rewrites the accesses to a buffer whose elements move; accesses out of bounds stay out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import EnclosingContext, accesses
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import index
from gossamer_ir.core.conditions import in_range, short_circuit_conjunction
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.nodes import Binary, Block, Expr, Function, IfThenElse, Node, Range, Stmt
from gossamer_ir.traversal.access_types import ELEMENT_NODES, HINTS, INDEXED_NODES
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import values_bound_in
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error, text_of

OUTSIDE = index(-1)
"""An index that is out of bounds in each dimension of each buffer."""

NewIndices: TypeAlias = Callable[[Sequence[Expr]], tuple[Expr, ...]]
"""Maps the old indices of an element to its new ones."""


def body_with_moved_accesses(
    top: Cursor[object],
    buffer_name: str,
    new_indices: NewIndices,
    *,
    lost: Mapping[int, Expr],
) -> tuple[Stmt, ...]:
    """Return the body of the cursor's function with all accesses to a buffer at their `new_indices`.

    `lost` has the extent of each dimension in which an index out of bounds could become in bounds of the
    new buffer. Such an index is tested unless it is proved in bounds. If the test fails, the new index is
    out of bounds, too, so the kernel stops as before.

    Raises `.not_proved` if the index of a vector would need a test, or if the buffer is searched.
    """
    function = top.function
    if lost:
        _require_not_searched(top, buffer_name)
    values = values_bound_in(function.body)
    unproved = _unproved_dimensions(function, buffer_name, lost) if lost else {}

    def tested_indices(indices: Sequence[Expr]) -> tuple[Expr, ...]:
        tested = unproved.get(tuple(resolve(index, values) for index in indices), ())
        conditions = [
            _in_bounds_condition(indices[dimension], lost[dimension], buffer_name, top)
            for dimension in tested
        ]
        *others, last = new_indices(indices)
        condition = short_circuit_conjunction(*conditions)
        if condition is not None:  # in the last index, which may be a vector
            last = IfThenElse(condition, last, OUTSIDE)
        return (*others, last)

    return tuple(
        _with_moved_accesses(stmt, buffer_name, tested_indices, new_indices)
        for stmt in function.body
    )


def _require_not_searched(top: Cursor[object], buffer_name: str) -> None:
    """Refuse a buffer of which the function addresses a range, which has no indices to test."""
    for node in collect(INDEXED_NODES, *top.function.body):
        if node.buffer == buffer_name and not isinstance(node, ELEMENT_NODES):
            raise schedule_error(
                f"{top.primitive}.not_proved",
                f"Cannot prove that a search in buffer '{buffer_name}' stays in bounds of it.",
                needs="the buffer is not searched",
            )


def _unproved_dimensions(
    function: Function, buffer_name: str, lost: Mapping[int, Expr]
) -> dict[tuple[Expr, ...], tuple[int, ...]]:
    """Return, for the indices of each access, the lost dimensions not proved in bounds."""
    dimensions: dict[tuple[Expr, ...], tuple[int, ...]] = {}
    for access in accesses(function.body, buffers={buffer_name}):
        indices = tuple(at for at in access.indices if not isinstance(at, Range))
        unproved = tuple(
            dimension
            for dimension, extent in lost.items()
            if not _is_in_bounds(indices[dimension], extent, access.context, function)
        )
        dimensions[indices] = tuple(sorted({*unproved, *dimensions.get(indices, ())}))
    return dimensions


def _is_in_bounds(at: Expr, extent: Expr, context: EnclosingContext, function: Function) -> bool:
    point = ProgramPoint(function)
    point.assume_context(context)
    return point.is_in_range(at, extent)


def _in_bounds_condition(at: Expr, extent: Expr, buffer_name: str, top: Cursor[object]) -> Expr:
    if has_lanes(at):
        raise schedule_error(
            f"{top.primitive}.not_proved",
            f"Cannot prove that vectors of elements of buffer '{buffer_name}' are in bounds of it.",
            needs=f"{text_of(at)} is below {text_of(extent)} in all lanes",
        )
    return Binary("and", *in_range(at, extent))


def _with_moved_accesses(
    node: Node, buffer_name: str, tested: NewIndices, untested: NewIndices
) -> Any:
    """Return a node with the accesses to a buffer at their new indices.

    Hints, such as prefetches, need no test: they never fault.
    """
    if isinstance(node, ELEMENT_NODES) and node.buffer == buffer_name:
        new_indices = untested if isinstance(node, HINTS) else tested
        node = replace(node, indices=new_indices(node.indices))
    inner = map_children(
        node, lambda child: _with_moved_accesses(child, buffer_name, tested, untested)
    )
    is_changed = isinstance(inner, Block) and inner is not node
    return replace(inner, reads=None, writes=None) if is_changed else inner
