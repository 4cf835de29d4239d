"""Blocks that assign each element once: their assignments, and functions without such a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import sub
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.core.statement_kinds import WRITES
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, BlockIter, Compare, Expr, For, Function, Store
from gossamer_ir.traversal.buffer_definitions import without_allocations
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import values_after
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts, function_with_replaced
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.predicates.block_predicates import less_than
from gossamer_support.message_texts import amount


def required_assignment(cursor: Cursor[Block]) -> Store:
    """Return the store that a block consists of, in terms of its iterators, or refuse the block.

    Raises `.form`.
    """
    block = cursor.node
    if not block.body:
        raise _assignment_error(cursor)
    *lets, last = block.body
    values = {var.name: value for let in lets for var, value in values_after(let)}
    is_plain = not block.init and all(iterator.kind == "S" for iterator in block.iters)
    if not is_plain or len(values) != len(lets) or not isinstance(last, Store) or last.predicate:
        raise _assignment_error(cursor)
    store: Store = resolve(last, values)
    # An update of old values is not an expression of other elements.
    is_update = store.buffer in buffers_accessed(*store.indices, store.value)
    if is_update or any(map(has_lanes, store.indices)):
        raise _assignment_error(cursor)
    return store


def require_only_iters(cursor: Cursor[Block]) -> None:
    """Refuse a block that uses variables of loops that are removed with it, instead of its iterators.

    Raises `.predicate`.
    """
    block = cursor.node
    removed = {loop.var for loop in cursor.loops[len(own_nest(cursor).loops) :]}
    domains = (iterator.domain for iterator in block.iters)
    used = sorted(free_vars(replace(block, iters=()), *domains) & removed)
    if used:
        raise schedule_error(
            f"{cursor.primitive}.predicate",
            f"Block '{block.name}' uses {', '.join(used)} of the enclosing loops; expected only its "
            "iterators.",
            hint=f"Apply {cursor.primitive} before the loops are split again.",
        )


def _assignment_error(cursor: Cursor[Block]) -> ScheduleError:
    return schedule_error(
        f"{cursor.primitive}.form",
        f"Block '{cursor.node.name}' is not a single assignment to an element without a reduction.",
        place=cursor.place,
    )


def required_writer(top: Cursor[object], buffer_name: str) -> Cursor[Block]:
    """Return the cursor at the block with the only store to a buffer.

    Raises `.writers`.
    """
    writers = [
        cursor
        for cursor in top.below()
        if isinstance(cursor.node, Block) and buffer_name in outer_writes((cursor.node,))
    ]
    writes = [stmt for stmt in addressable_stmts(top.function.body) if isinstance(stmt, WRITES)]
    count = sum(write.buffer == buffer_name for write in writes)
    if not writers or count != 1:
        raise schedule_error(
            f"{top.primitive}.writers",
            f"Buffer '{buffer_name}' has {amount(count, 'store')}; expected one, in a block.",
        )
    # Blocks around the one with the store write the buffer, too: the last is the innermost.
    return writers[-1]


def domain_conditions(
    iterator: BlockIter, value: Expr, values: Mapping[str, Expr]
) -> tuple[Expr, Expr]:
    """Return the conditions that a value of an iterator is in its domain, at values of other iterators."""
    start, extent = resolve(iterator.domain.start, values), resolve(iterator.domain.extent, values)
    return Compare("ge", value, start), less_than(sub(value, start), extent)


def visit_conditions(block: Block, point: Mapping[str, Expr]) -> Iterator[Expr]:
    """Yield the conditions under which a block visits a point."""
    for iterator in block.iters:
        yield from domain_conditions(iterator, point[iterator.var], point)
    for part in conjuncts(block.predicate):
        yield substitute(part, point)


def own_nest(cursor: Cursor[object]) -> Cursor[Any]:
    """Return the cursor at the block, or at the outermost loop that contains nothing else."""
    hops = 0
    for step in reversed(cursor.path):
        if not isinstance(step.parent, For) or len(step.body) != 1:
            break
        hops += 1
    return cursor.up(hops)


def without_block(cursor: Cursor[object]) -> Function:
    """Return the function without the block and the loops that contain nothing else."""
    return function_with_replaced(own_nest(cursor), ())


def without_buffer(function: Function, buffer_name: str) -> Function:
    """Return the function without an unused buffer and its allocation.

    The buffer stays declared if its offsets are an argument of the function that no other buffer has.
    """

    others = tuple(other for other in function.buffers if other.name != buffer_name)
    shared_offsets = {getattr(other, "offsets", None) for other in others}
    is_needed = any(
        old.name == buffer_name and getattr(old, "offsets", None) not in shared_offsets | {None}
        for old in function.buffers
    )
    kept = function.buffers if is_needed else others
    return replace(function, buffers=kept, body=without_allocations(function.body, {buffer_name}))
