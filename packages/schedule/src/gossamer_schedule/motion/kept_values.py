"""Values that a buffer keeps from an earlier iteration of a loop around the statement that fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import Access, accesses
from gossamer_ir.analysis.accesses.init_nests import conditions_of_init
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.nodes import Block, Expr, For, Function, Load, Stmt, Store, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import allocation_of, body_in
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.program_points import point_in_block, point_in_function
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.definite_assignment import definitely_assigns
from gossamer_schedule.motion.inline import visit_conditions
from gossamer_schedule.regions.computing_iters import computing_iters
from gossamer_schedule.regions.match_indices import match_all


def may_keep_values(cursor: Cursor[object], buffer_name: str) -> bool:
    """Return whether the statement at a cursor may run again during the lifetime of a buffer that it fills.

    An element that it does not store the next time then keeps its old value; otherwise it is undefined.
    """
    for step in reversed(cursor.path):
        # Each iteration of loops around the allocation gets a new buffer.
        if any(_is_allocation_of(stmt, buffer_name) for stmt in step.earlier):
            return False
        # With at most one iteration, nothing can be left from an earlier one.
        if not isinstance(step.parent, Function) and body_in(step.parent, step.field).repeats:
            return True
    return False


def _is_allocation_of(stmt: Stmt, buffer_name: str) -> bool:
    allocated = allocation_of(stmt)
    return allocated is not None and allocated.name == buffer_name


def is_constant_in_function(value: Expr, function: Function) -> bool:
    """Return whether an expression has one value in a function: it depends on parameters, and on buffers that
    are not written."""
    params = {param.name for param in function.params}
    return free_vars(value) <= params and is_constant(value, function=function)


def require_recomputed(
    cursor: Cursor[Block], own_loops: Sequence[For], target: Cursor[For], *, produced: Set[str]
) -> None:
    """Refuse a block that may not compute all of its results that a loop reads, each time its nest runs.

    An element that it does not compute may keep an older value, which is lost if the block moves into the
    loop. Only buffers that outlive the nest can keep values.

    Raises `.not_proved`.
    """
    # A buffer that is allocated anew each time that the nest runs cannot hold an earlier value.
    kept = {name for name in produced if may_keep_values(cursor.up(len(own_loops)), name)}
    if not kept:
        return
    for access in accesses(target.node.body, values=values_at(target), buffers=kept):
        # Stores overwrite the old value; only loads can observe it.
        if not access.is_store and not _is_computed(cursor, own_loops, access, target=target):
            raise schedule_error(
                f"{cursor.primitive}.not_proved",
                f"Cannot prove that block '{cursor.node.name}' computes all elements of "
                f"'{access.buffer}' that loop '{target.node.var}' reads each time that it runs; an element "
                "may have a value from an earlier iteration of a loop around both.",
                needs=f"each element of '{access.buffer}' that is read belongs to a point in the domains of "
                "the block at which its conditions hold",
                hint=f"Allocate '{access.buffer}' in that loop.",
            )


def _is_computed(
    cursor: Cursor[Block], own_loops: Sequence[For], access: Access, *, target: Cursor[For]
) -> bool:
    """Return whether the block computes an accessed element each time that its nest runs."""
    block = cursor.node
    if access.buffer in buffers_with_aliasing_indices(cursor.function):
        return False
    point = _computing_point(cursor, own_loops, access)
    if point is None or not definitely_assigns(block.init or block.body, access.buffer):
        return False
    access_point = _point_of_access(access, target)
    predicate = (
        conjunction(*conditions_of_init(enclosed_block(cursor))) if block.init else block.predicate
    )
    visited = (iterator for iterator in block.iters if iterator.kind == "S")
    conditions = visit_conditions(replace(block, iters=tuple(visited), predicate=predicate), point)
    return all(access_point.proves(resolve(part, point)) for part in conditions)


def _point_of_access(access: Access, target: Cursor[For]) -> ProgramPoint:
    """Return the program point of an access in a loop."""
    point = point_in_function(target.function)
    for loop in (*target.loops, target.node):
        # An init runs even if the reduction has no iteration, so that nothing is known of its loops.
        if loop.var not in access.context.idle:
            point.assume_loop(loop)
    point.assume_context(access.context)
    return point


def _computing_point(
    cursor: Cursor[Block], own_loops: Sequence[For], access: Access
) -> dict[str, Expr] | None:
    """Return a point at which the block computes an accessed element: the values of its iterators, loops and
    lets. None if none is known."""
    block = cursor.node
    removed = {loop.var: loop for loop in own_loops}
    bound = {
        iterator.var: iterator.value for iterator in block.iters if isinstance(iterator.value, Var)
    }
    free = {name for name, value in bound.items() if value.name in removed}
    values = values_at(cursor)
    fixed = {
        iterator.var: resolve(iterator.value, values)
        for iterator in block.iters
        if iterator.var not in free
    }
    matched = computing_iters(block, access, free=free, values=values | fixed)
    if matched is None:
        return None
    point = _completed_point(block, values | fixed | matched)
    if point is None:
        return None
    return point | {bound[name].name: point[name] for name in free & point.keys()}


def _completed_point(block: Block, point: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """Return a point with a value for each free spatial iterator; None if its domain may be empty."""
    completed = dict(point)
    for iterator in block.iters:
        if iterator.kind == "S" and iterator.var not in point:
            if (
                integer_value(iterator.domain.start) != 0
                or (integer_value(iterator.domain.extent) or 0) < 1
            ):
                return None
            # Any value does, since the element does not depend on it; 0 is in a domain that is not empty.
            completed[iterator.var] = ZERO
    return completed


def is_computed_for(reader: Cursor[Block], load: Load, maker: Cursor[Block], store: Store) -> bool:
    """Return whether block `maker` computes what block `reader` loads at each of its points, given that both
    run over their whole domains."""
    free = {iterator.var for iterator in maker.node.iters}
    matched = match_all(store.indices, load.indices, free=free)
    point = None if matched is None else _completed_point(maker.node, matched)
    if point is None:
        return False
    reader_point = point_in_block(reader)
    return all(map(reader_point.proves, visit_conditions(maker.node, point)))
