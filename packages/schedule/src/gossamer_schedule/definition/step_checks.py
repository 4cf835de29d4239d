"""Checks of the result of every step: what annotated loops and thread-private buffers require still holds."""

from __future__ import annotations

from gossamer_ir.analysis.statements.atomic_accumulation import buffer_shared_otherwise, is_atomic
from gossamer_ir.analysis.statements.software_pipelining import copies_ahead, is_pipelined
from gossamer_ir.nodes import For, Function, Module
from gossamer_schedule.cursor.cursor_at import addressable_stmts_of
from gossamer_schedule.definition.thread_scopes import escaping_private_buffers
from gossamer_schedule.errors import schedule_error


def require_annotations_hold(module: Module, name: str) -> None:
    """Require that annotated loops satisfy the requirements of their annotations."""
    for function in module.functions:
        for stmt in addressable_stmts_of(function):
            if not isinstance(stmt, For) or not stmt.annotations:
                continue
            if is_atomic(stmt):
                _require_accumulating(stmt, name)
            if is_pipelined(stmt):
                _require_copies(stmt, function, name)


def require_no_private_copies(changed: Module, module: Module, name: str) -> None:
    """Require that no thread-private buffer is used outside its thread loop, unless it was before the
    step."""
    for function in changed.functions:
        for loop, buffer in escaping_private_buffers(function):
            if any(
                other == buffer
                for old in module.functions
                for _, other in escaping_private_buffers(old)
            ):
                continue
            raise schedule_error(
                f"{name}.threads",
                f"Each thread of loop '{loop.var}' would have its own '{buffer}', which is also "
                "used outside the loop.",
                hint="Use set_scope to choose a scope that the threads share.",
            )


def _require_accumulating(loop: For, name: str) -> None:
    """Require that a loop with atomic updates only accumulates into the buffers that its iterations share."""
    buffer = buffer_shared_otherwise(loop)
    if buffer is not None:
        raise schedule_error(
            f"{name}.shared",
            f"Loop '{loop.var}' would no longer only accumulate into '{buffer}', although its iterations "
            "share elements of it.",
            hint=f"Apply {name} before the loop is made parallel.",
        )


def _require_copies(loop: For, function: Function, name: str) -> None:
    """Require that a pipelined loop is serial and begins with copies, which may run ahead of its other
    statements."""
    if loop.kind != "serial" or not copies_ahead(loop, function):
        raise schedule_error(
            f"{name}.pipelined",
            f"Pipelined loop '{loop.var}' would no longer be serial and begin with a copy.",
            hint=f"Apply {name} before pipeline.",
        )
