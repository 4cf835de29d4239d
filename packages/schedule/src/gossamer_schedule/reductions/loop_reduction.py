"""Loops that consist of a single reduction, and the order in which they visit its elements."""

from __future__ import annotations

from collections.abc import Set

import msgspec

from gossamer_ir.analysis.statements.reductions import Reduction
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.nodes import Block, Buffer, Expr, For
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.monotone_loops import is_monotone_along
from gossamer_schedule.nests.block_nest import single_block
from gossamer_schedule.reductions.reassociation import combiner_of, reduction_of


class LoopReduction(msgspec.Struct, frozen=True):
    """The only reduction below a loop, with the indices of its element in terms of loops."""

    cursor: Cursor[For]
    block: Block
    reduction: Reduction
    element: tuple[Expr, ...]
    buffer: Buffer


def required_loop_reduction(cursor: Cursor[For]) -> LoopReduction:
    """Return the reduction without an init that the loop at a cursor consists of, or refuse the loop."""
    block = single_block(cursor.node.body)
    reduction = None if block is None else reduction_of(block)
    if block is None or reduction is None or block.init or not _is_only_use(cursor, reduction):
        raise schedule_error(
            f"{cursor.primitive}.no_reduction",
            f"Loop '{cursor.node.var}' is not a single reduction X[...] = X[...] op value.",
            hint="Apply decompose_reduction to a block with an init.",
            place=cursor.place,
        )
    values = values_at(cursor) | {iterator.var: iterator.value for iterator in block.iters}
    element = tuple(resolve(at, values) for at in reduction.store.indices)
    (buffer,) = (b for b in all_buffers(cursor.function) if b.name == reduction.store.buffer)
    assert isinstance(buffer, Buffer)  # of the loop stage
    return LoopReduction(cursor, block, reduction, element, buffer)


def _is_only_use(cursor: Cursor[Block | For], reduction: Reduction) -> bool:
    """Return whether nothing else in the loop, such as a bound of an inner loop, uses the buffer of the
    reduction, which combines one element at a time."""
    store = reduction.store
    return (
        not any(map(has_lanes, store.indices))
        and combiner_of(cursor.node.body, store.buffer) is not None
    )


def required_segment_dimension(reduction: LoopReduction) -> int:
    """Return the only dimension whose index changes with the loop, or refuse an index that may decrease."""
    loop = reduction.cursor.node
    inner = {below.var for below in addressable_stmts(loop.body) if isinstance(below, For)}
    changing = [
        dimension for dimension, at in enumerate(reduction.element) if loop.var in free_vars(at)
    ]
    ordered = [
        dimension
        for dimension in changing
        if not free_vars(reduction.element[dimension]) & inner
        and is_monotone_along(reduction.element[dimension], reduction.cursor)
    ]
    _require_every_iteration(reduction, inner)
    if len(changing) == 1 and ordered:
        return ordered[0]
    raise schedule_error(
        "parallel_reduction.not_proved",
        f"Cannot prove that loop '{loop.var}' visits the elements of '{reduction.buffer.name}' in "
        "order.",
        needs=" or ".join(
            f"{text_of(reduction.element[dimension])} never decreases" for dimension in changing
        )
        or "an index of the element follows the loop",
        hint="form='privatized' needs no order.",
        place=reduction.cursor.place,
    )


def _require_every_iteration(reduction: LoopReduction, inner: Set[str]) -> None:
    """Refuse loops that may have iterations without an element.

    Each part of the loop finds its first element in its first iteration.
    """
    values = values_at(reduction.cursor) | {
        iterator.var: iterator.value for iterator in reduction.block.iters
    }
    outer = {loop.var for loop in reduction.cursor.loops} | {reduction.cursor.node.var}
    for part in conjuncts(reduction.block.predicate):
        names = free_vars(resolve(part, values))
        # A condition on the loop itself may skip the first iteration of a part,
        # which finds the first element.
        if names & outer or not names & inner:
            raise schedule_error(
                "parallel_reduction.not_proved",
                f"Cannot prove that each iteration of loop '{reduction.cursor.node.var}' has an element.",
                needs=text_of(part),
                hint="Make the loop parallel before it is split.",
                place=reduction.cursor.place,
            )
