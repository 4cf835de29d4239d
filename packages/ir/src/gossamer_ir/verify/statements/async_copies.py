"""Checks of asynchronous copies to shared memory, and of their groups."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.nodes import AsyncCopy, CommitGroup, Load, Ramp, Stmt, Store, WaitGroup
from gossamer_ir.verify.context import At, VerifyContext
from gossamer_ir.verify.expressions.dtype_queries import parse_dtype
from gossamer_ir.verify.statements.statement_checks import check_body

COPIED_BYTES = (4, 8, 16)
"""The numbers of bytes that a copy may have."""

MOST_PENDING = 8
"""The most groups that may be pending after a wait."""


def check_async_copy(context: VerifyContext, node: AsyncCopy, at: At) -> None:
    """Check that the body is a store to shared memory of consecutive elements of global memory."""
    check_body(context, node.body, at)
    copy = _copy_of(node.body)
    if copy is None:
        context.report(
            "verify.copy.body",
            "The body of an asynchronous copy is not one store of consecutive elements of another buffer.",
            at,
            hint="Expected one store without a predicate, as in S[i] = X[j].",
        )
        return
    target, source = (context.buffers.get(each.buffer) for each in copy)
    if target is None or source is None:
        return
    if target.scope != "shared" or source.scope != "global":
        context.report(
            "verify.copy.scope",
            f"An asynchronous copy is from '{copy[1].buffer}', in the scope '{source.scope}', to "
            f"'{copy[0].buffer}', in the scope '{target.scope}'.",
            at,
            hint="Copy from global to shared memory.",
        )
    _check_size(context, copy[1], at)


def _copy_of(body: tuple[Stmt, ...]) -> tuple[Store, Load] | None:
    """Return the store and the load of a copy of consecutive elements; None for any other body."""
    match body:
        case (Store(value=Load(predicate=None) as load, predicate=None) as store,):
            is_vector = DType.parse(load.dtype).is_vector
            ends = all(_is_run(each.indices, is_vector=is_vector) for each in (store, load))
            return (store, load) if ends else None
    return None


def _is_run(indices: tuple[object, ...], *, is_vector: bool) -> bool:
    """Return whether indices select one element, or those of a ramp along the last dimension."""
    *outer, last = indices or (None,)
    if any(has_lanes(each) for each in outer):  # type: ignore[arg-type]  # expressions
        return False
    if not is_vector:
        return True
    return isinstance(last, Ramp) and _is_one(last)


def _is_one(ramp: Ramp) -> bool:
    stride = ramp.stride
    return getattr(stride, "text", None) == "1" and not ramp.lanes.scalable


def _check_size(context: VerifyContext, load: Load, at: At) -> None:
    dtype = parse_dtype(load.dtype)
    size = 0 if dtype is None else dtype.bits * dtype.lanes // 8
    if dtype is not None and size not in COPIED_BYTES:
        context.report(
            "verify.copy.size",
            f"An asynchronous copy of {load.dtype} has {size} bytes; expected 4, 8 or 16.",
            at,
            hint="Copy vectors of elements that are smaller.",
        )


def check_commit_group(_context: VerifyContext, _node: CommitGroup, _at: At) -> None:
    """Accept the end of a group, which may be empty."""


def check_wait_group(context: VerifyContext, node: WaitGroup, at: At) -> None:
    """Check that the number of groups that may be pending is possible."""
    if not 0 <= node.pending <= MOST_PENDING:
        context.report(
            "verify.wait.pending",
            f"A wait leaves {node.pending} groups pending; expected from 0 to {MOST_PENDING}.",
            at,
        )
