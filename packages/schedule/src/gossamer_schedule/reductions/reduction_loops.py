"""Loops over the terms of reductions, which may be combined in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gossamer_ir.analysis.accesses.init_nests import reduction_loops, spatial_loops
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.nodes import Block, Expr, For, Stmt
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.unsafe_mark import Requirement
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.reductions.reassociation import (
    combiner_of,
    reduction_of,
    with_reassociation_marks,
)


def _blocks_below(cursor: Cursor[Block | For]) -> list[Block]:
    return [stmt for stmt in addressable_stmts(cursor.node.body) if isinstance(stmt, Block)]


def is_reduction_loop(cursor: Cursor[For]) -> bool:
    """Return whether the loop at a cursor feeds a reduction iterator of a block below it."""
    values = values_at(cursor)
    return any(cursor.node.var in reduction_loops(block, values) for block in _blocks_below(cursor))


def is_accumulation_loop(cursor: Cursor[For]) -> bool:
    """Return whether the loop at a cursor only combines terms with elements that do not depend on it.

    Its meaning does not depend on the kinds of the iterators that it feeds.
    """
    return bool(cursor.node.body) and all(
        isinstance(stmt, Block) and not stmt.init and _is_lane_reduction(stmt, cursor)
        for stmt in cursor.node.body
    )


def required_concurrent_body(
    cursor: Cursor[For], *, is_reduction: bool, require: Requirement, allows_loops: bool = False
) -> tuple[Stmt, ...]:
    """Return the body of the loop at a cursor whose iterations will run at the same time.

    A reduction must consist of reducers, and gets the annotation of those whose terms are combined in another
    order. If it `allows_loops`, reducers may be in loops inside, along which they combine with one element,
    too. `require` checks any other loop.
    """
    body: tuple[Stmt, ...] = cursor.node.body
    if not is_reduction:
        require(cursor)
        return body
    _require_reducers(cursor, allows_loops=allows_loops)
    return with_reassociation_marks(body)


def _require_reducers(cursor: Cursor[For], *, allows_loops: bool) -> None:
    """Refuse the loop at a cursor unless its body consists of blocks that are reductions over it, and over
    the loops inside that are allowed.

    No block may use the result of another one, which is complete only after the loop.
    """
    loops: list[str] = [cursor.node.var]
    for stmt in _terms(cursor.node.body, loops) if allows_loops else cursor.node.body:
        if isinstance(stmt, Block):
            _require_one_element(stmt, cursor, loops)
        if not isinstance(stmt, Block) or not _is_lane_reduction(stmt, cursor):
            name = f"Block '{stmt.name}'" if isinstance(stmt, Block) else "A statement"
            raise schedule_error(
                f"{cursor.primitive}.not_reducer",
                f"{name} under reduction loop '{cursor.node.var}' is not a reduction over it.",
                hint="Expected a block with the one statement X[...] = X[...] op value, where op "
                "is +, *, min, max, and, or.",
                place=cursor.place,
            )
    _require_no_other_use(cursor)


def _terms(body: tuple[Stmt, ...], loops: list[str]) -> Iterator[Stmt]:
    """Yield the statements in loops that one thread runs, or other threads of its block, and note the
    variables of these loops."""
    for stmt in body:
        is_of_block = isinstance(stmt, For) and is_thread_axis(stmt.thread)
        if isinstance(stmt, For) and (stmt.kind in ("serial", "unrolled") or is_of_block):
            loops.append(stmt.var)
            yield from _terms(stmt.body, loops)
        else:
            yield stmt


def _require_no_other_use(cursor: Cursor[For]) -> None:
    """Refuse a body that uses a reduced buffer otherwise: its elements are complete only after the loop."""
    for buffer in sorted(outer_writes(cursor.node.body)):
        if combiner_of(cursor.node.body, buffer) is None:
            raise schedule_error(
                f"{cursor.primitive}.not_reducer",
                f"Reduction loop '{cursor.node.var}' uses '{buffer}' for more than combining its elements "
                "by one reducer.",
                hint="Expected blocks with the one statement X[...] = X[...] op value, where op is +, *, "
                "min, max, and, or, and no block uses what another one writes.",
                place=cursor.place,
            )


def _require_one_element(block: Block, cursor: Cursor[object], loops: Sequence[str]) -> None:
    """Refuse a reduction whose element may change along one of the loops.

    Lanes that may or may not share an element can neither be reduced first nor be stored as a vector.
    """
    for loop_name in loops:
        varying = _varying_indices(block, cursor, loop_name)
        if reduction_of(block) is not None and varying:
            raise schedule_error(
                f"{cursor.primitive}.not_proved",
                f"Cannot prove that block '{block.name}' combines with one element in all iterations "
                f"of loop '{loop_name}'.",
                needs=" and ".join(
                    f"{text_of(at)} is the same for every {loop_name}" for at in varying
                ),
                place=cursor.place,
            )


def _is_lane_reduction(block: Block, cursor: Cursor[For]) -> bool:
    loop_name = cursor.node.var
    is_spatial = loop_name in spatial_loops(block, values_at(cursor))
    is_one_element = reduction_of(block) is not None and not _varying_indices(
        block, cursor, loop_name
    )
    return is_one_element and not (is_spatial and block.init)


def _varying_indices(block: Block, cursor: Cursor[object], loop_name: str) -> list[Expr]:
    """Return the indices of a reduction's element that change along a loop, in terms of loops."""
    reduction = reduction_of(block)
    values: dict[str, Any] = {iterator.var: iterator.value for iterator in block.iters} | values_at(
        cursor
    )
    indices = [] if reduction is None else [resolve(at, values) for at in reduction.store.indices]
    return [at for at in indices if loop_name in free_vars(at)]
