"""Checks of atomic updates.

A buffer that is updated atomically has one operation, and no other statement accesses it: an ordinary
access could run at the same time in another thread, and different operations do not commute.
"""

from __future__ import annotations

from typing import Any

from gossamer_ir.analysis.statements.atomic_accumulation import (
    ATOMIC_OPS,
    buffer_shared_otherwise,
    is_atomic,
    is_atomic_dtype,
    plain_update,
    shared_names,
)
from gossamer_ir.nodes import Atomic, For, Function
from gossamer_ir.traversal.access_types import ACCESSES
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_ir.verify.context import At, VerifyContext
from gossamer_ir.verify.expressions.buffer_accesses import check_store
from gossamer_ir.verify.expressions.dtype_queries import parse_dtype
from gossamer_ir.verify.expressions.operand_dtypes import check_expr

_OTHER_ACCESSES: Any = tuple(kind for kind in ACCESSES if kind is not Atomic)


def check_atomic(context: VerifyContext, node: Atomic, at: At) -> None:
    """Check that the operation of an atomic update exists and that its element is a number."""
    if node.op not in ATOMIC_OPS:
        context.report(
            "verify.atomic.op",
            f"'{node.op}' is not an atomic operation; expected one of {', '.join(ATOMIC_OPS)}.",
            at,
        )
        return
    buffer = context.buffers.get(node.buffer)
    if (
        buffer is not None
        and parse_dtype(buffer.dtype) is not None
        and not is_atomic_dtype(buffer.dtype)
    ):
        context.report(
            "verify.atomic.dtype", f"'{node.buffer}' holds {buffer.dtype}, not numbers.", at
        )
    elif check_expr(context, node.value, at.down("value")) is not None:
        check_store(context, plain_update(node), at)


def check_marked_loop(context: VerifyContext, loop: For, at: At) -> None:
    """Check that the iterations of a loop marked 'atomic' only accumulate into shared elements."""
    if not is_atomic(loop):
        return
    # At the flat stage a function declares only the buffers that it accesses, so names may be missing.
    named = () if context.stage.name == "flat" else shared_names(loop) or ()
    for unknown in sorted(set(named) - context.buffers.keys()):
        context.report(
            "verify.atomic.name",
            f"Loop '{loop.var}' is marked 'atomic' for '{unknown}', which is not a buffer.",
            at,
        )
    name = buffer_shared_otherwise(loop)
    if name is not None:
        context.report(
            "verify.atomic.loop",
            f"The iterations of loop '{loop.var}', which is marked 'atomic', do not only accumulate "
            f"into '{name}' by one of {', '.join(ATOMIC_OPS)}.",
            at,
        )


def check_shared(context: VerifyContext, function: Function, at: At) -> None:
    """Check that each atomically updated buffer has one operation and no other access."""
    ops: dict[str, set[str]] = {}
    for stmt in stmts(function.body):
        if isinstance(stmt, Atomic):
            ops.setdefault(stmt.buffer, set()).add(stmt.op)
    # Most functions have no atomic updates, and the accesses below are those of the whole function.
    if not ops:
        return
    accesses = collect(_OTHER_ACCESSES, *function.body)
    accessed = {node.buffer for node in accesses}
    for name in sorted(ops):
        if name in accessed or len(ops[name]) > 1:
            context.report(
                "verify.atomic.shared",
                f"'{name}' is updated atomically, but other statements or another atomic operation "
                "access it too.",
                at,
            )
