"""Checks of asynchronous copies to shared memory, and of their groups."""

from __future__ import annotations

from gossamer_ir.analysis.statements.async_copies import (
    COPIED_BYTES,
    ContiguousCopy,
    contiguous_copy,
)
from gossamer_ir.nodes import AsyncCopy, CommitGroup, Load, Stmt, Store, WaitGroup
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.expressions.dtype_queries import parse_dtype
from gossamer_ir.verify.statements.statement_checks import check_body

MAX_PENDING = 8
"""The most groups that may be pending after a wait."""


def check_async_copy(context: VerifyContext, node: AsyncCopy, place: NodePlace) -> None:
    """Check that the body is a store to shared memory of consecutive elements of global memory."""
    check_body(context, node.body, place)
    copy = _copy_in(node.body)
    if copy is None:
        context.report(
            "verify.copy.body",
            "The body of an asynchronous copy is not one store of consecutive elements of another buffer.",
            place,
            hint="Expected one store without a predicate, as in S[i] = X[j].",
        )
        return
    target, source = (context.buffers.get(access.buffer) for access in (copy.store, copy.load))
    if target is None or source is None:
        return
    if target.scope != "shared" or source.scope != "global":
        context.report(
            "verify.copy.scope",
            f"An asynchronous copy is from '{copy.load.buffer}', in the scope '{source.scope}', to "
            f"'{copy.store.buffer}', in the scope '{target.scope}'.",
            place,
            hint="Copy from global to shared memory.",
        )
    if copy.size not in COPIED_BYTES:
        context.report(
            "verify.copy.size",
            f"An asynchronous copy of {copy.load.dtype} has {copy.size} bytes; expected 4, 8 or 16.",
            place,
            hint="Copy vectors of elements that are smaller.",
        )


def _copy_in(body: tuple[Stmt, ...]) -> ContiguousCopy | None:
    match body:
        case (Store(value=Load(dtype=dtype)) as store,) if parse_dtype(dtype) is not None:
            return contiguous_copy(store)
    return None


def check_commit_group(_context: VerifyContext, _node: CommitGroup, _place: NodePlace) -> None:
    """Accept the end of a group, which may be empty."""


def check_wait_group(context: VerifyContext, node: WaitGroup, place: NodePlace) -> None:
    """Check that the number of groups that may be pending is possible."""
    if not 0 <= node.pending <= MAX_PENDING:
        context.report(
            "verify.wait.pending",
            f"A wait leaves {node.pending} groups pending; expected from 0 to {MAX_PENDING}.",
            place,
        )
