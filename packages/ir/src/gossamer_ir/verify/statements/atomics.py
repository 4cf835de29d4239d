"""Checks of atomic updates.

A buffer that is updated atomically has one operation, and no other statement accesses it: an ordinary
access could run at the same time in another thread, and different operations do not commute. This holds for
statements that run at once. Loops that are bound to threads are launches, which follow each other. The
branches of a condition around all that iterations do are those of loops that were fused, whose elements are
different or shared by atomic updates alone (`horizontal_fuse`). Memory of a block is accessed by its threads
only, which wait for each other between loops over them (`insert_sync`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gossamer_ir.analysis.statements.atomic_accumulation import (
    ATOMIC_OPS,
    buffer_shared_otherwise,
    is_atomic,
    is_atomic_dtype,
    plain_update,
    shared_names,
)
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Atomic, For, Function, If, Let, Stmt
from gossamer_ir.traversal.access_types import ACCESSES
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.buffer_accesses import check_store
from gossamer_ir.verify.expressions.check_expr import check_expr
from gossamer_ir.verify.expressions.dtype_queries import parse_dtype

_OTHER_ACCESSES: Any = tuple(kind for kind in ACCESSES if kind is not Atomic)


def check_atomic(context: VerifyContext, node: Atomic, place: NodePlace) -> None:
    """Check that the operation of an atomic update exists and that its element is a number."""
    if node.op not in ATOMIC_OPS:
        context.report(
            "verify.atomic.op",
            f"'{node.op}' is not an atomic operation; expected one of {', '.join(ATOMIC_OPS)}.",
            place,
        )
        return
    buffer = context.buffers.get(node.buffer)
    if (
        buffer is not None
        and parse_dtype(buffer.dtype) is not None
        and not is_atomic_dtype(buffer.dtype)
    ):
        context.report(
            "verify.atomic.dtype", f"'{node.buffer}' holds {buffer.dtype}, not numbers.", place
        )
    elif check_expr(context, node.value, place.down("value")) is not None:
        check_store(context, plain_update(node), place)


def check_marked_loop(context: VerifyContext, loop: For, place: NodePlace) -> None:
    """Check that the iterations of a loop marked 'atomic' only accumulate into shared elements."""
    if not is_atomic(loop):
        return
    # At the flat stage a function declares only the buffers that it accesses, so names may be missing.
    named = () if context.stage.name == "flat" else shared_names(loop) or ()
    for unknown in sorted(set(named) - context.buffers.keys()):
        context.report(
            "verify.atomic.name",
            f"Loop '{loop.var}' is marked 'atomic' for '{unknown}', which is not a buffer.",
            place,
        )
    name = buffer_shared_otherwise(loop)
    if name is not None:
        context.report(
            "verify.atomic.loop",
            f"The iterations of loop '{loop.var}', which is marked 'atomic', do not only accumulate "
            f"into '{name}' by one of {', '.join(ATOMIC_OPS)}.",
            place,
        )


# Other statements: refused if they update what other threads update; only `Atomic` may.
def check_shared(context: VerifyContext, function: Function, place: NodePlace) -> None:
    """Check that each atomically updated buffer has one operation and no other access that runs at once."""
    # Most functions have no atomic updates.
    if not any(isinstance(stmt, Atomic) for stmt in stmts(function.body)):
        return
    block_buffers = {
        buffer.name for buffer in allocations(stmts(function.body)) if buffer.scope == "shared"
    }
    mixed = {name for body in _concurrent(function.body) for name in _mixed_access_buffers(body)}
    mixed_in_block = {
        name
        for loop in _loops_over_threads(function.body)
        for name in _mixed_access_buffers((loop,))
    }
    for name in sorted((mixed - block_buffers) | (mixed_in_block & block_buffers)):
        context.report(
            "verify.atomic.shared",
            f"'{name}' is updated atomically, but other statements or another atomic operation "
            "access it too.",
            place,
        )


# Other statements: refused if they update what other threads update; only `Atomic` may.
def _mixed_access_buffers(body: tuple[Stmt, ...]) -> Iterator[str]:
    """Yield the buffers that statements update atomically, and access otherwise."""
    ops: dict[str, set[str]] = {}
    for stmt in stmts(body):
        if isinstance(stmt, Atomic):
            ops.setdefault(stmt.buffer, set()).add(stmt.op)
    accessed = {node.buffer for node in collect(_OTHER_ACCESSES, *body)} if ops else set()
    yield from (name for name in ops if name in accessed or len(ops[name]) > 1)


def _loops_over_threads(body: tuple[Stmt, ...]) -> Iterator[For]:
    """Yield the outermost loops over the threads of a block."""
    for stmt in body:
        if isinstance(stmt, For) and is_thread_axis(stmt.thread):
            yield stmt
        else:
            for inner in effects_of(stmt).bodies:
                yield from _loops_over_threads(inner.stmts)


def _concurrent(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """Yield the statements of each launch, and those outside of all."""
    outside: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.thread is not None:
            yield from _branches((stmt,))
        else:
            outside.append(stmt)
    yield from _branches(tuple(outside))


# Other statements: nothing is concluded from them.
def _branches(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    """Yield the branches of the condition around all that loops do; the statements if there is none."""
    others = [stmt for stmt in body if not isinstance(stmt, Let)]
    match others:
        case [For() as loop]:
            yield from _branches(loop.body)
        case [If() as branch]:
            yield from _branches(branch.then_body)
            yield from _branches(branch.else_body)
        case _:
            yield body
