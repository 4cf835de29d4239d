"""Requires that all threads of a block reach the barriers of a kernel together."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.statement_kinds import BLOCK_BARRIERS, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import For, Function, Stmt
from gossamer_ir.traversal.walk import contains
from gossamer_lower.device.thread_context import ThreadContext, UniformValues


def require_uniform_barriers(kernel: Function) -> None:
    """Raise `UnsupportedError` (`lower.insert_sync.barrier`) for a barrier in a condition or a loop that is
    not proved to have the same values in all threads of a block.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> from gossamer_ir.nodes import Barrier, Compare, If
    >>> branch = If(Compare("lt", index_var("t"), index(2)), (Barrier(),))
    >>> loop = For("t", ZERO, index(4), (branch,), kind="thread_binding", thread="threadIdx.x")
    >>> require_uniform_barriers(Function("f", (), (loop,)))
    Traceback (most recent call last):
    gossamer_ir.errors.UnsupportedError: Not all threads of a block of 'f' are proved to reach a barrier ...
    """
    values = UniformValues(kernel)
    for stmt in kernel.body:
        _require_uniform(stmt, ThreadContext(), values, kernel.name)


def _require_uniform(
    stmt: Stmt, context: ThreadContext, values: UniformValues, kernel_name: str
) -> None:
    if not contains(BLOCK_BARRIERS, stmt):
        return
    if not context.is_uniform:
        raise UnsupportedError(
            "lower.insert_sync.barrier",
            f"Not all threads of a block of '{kernel_name}' are proved to reach a barrier together: a "
            f"'{type(stmt).__name__}' with a barrier depends on values that differ between threads.",
            hint="Move the barrier out of conditions and loops that depend on the thread.",
        )
    effects = effects_of(stmt)
    if isinstance(stmt, For) and stmt.thread is not None:
        inner = replace(context, bound={**context.bound, stmt.thread: stmt.var})
    else:
        is_uniform = values.are_uniform(context, *effects.evaluates)
        inner = replace(context, is_uniform=is_uniform)
    for body in effects.bodies:
        for inside in body.stmts:
            _require_uniform(inside, inner, values, kernel_name)
