"""`set_scope`: a buffer of the function lives elsewhere."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import replace

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module, Scope
from gossamer_schedule.cursor.allocations import require_allocated, with_buffer
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_buffer, find_function, require_stage
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

SCOPES: tuple[str, ...] = get_args(Scope)


@primitive
def set_scope(module: Module, buffer: str, *, scope: str, function: str | None = None) -> Result:
    """Sets where a buffer that the function allocates lives: "global", "shared", "warp", "local" or
    "fragment". Threads that have buffers of their own must not share it.

    Raises `ScheduleError`: `schedule.set_scope.scope` (no scope), `.parameter` (the caller's buffer),
    `.threads` (a loop on threads that do not see each other's buffers holds some of its accesses, and
    not all), `.no_buffer`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import STAGED
    >>> def scope_of(module): return module.functions[0].buffers[-1].scope
    >>> scope_of(STAGED)
    'shared'
    >>> scope_of(set_scope(STAGED, "X_shared", scope="local").module)
    'local'
    """
    require_stage(module, "set_scope", stages=LOOP_STAGES)
    root = find_function(module, "set_scope", function=function)
    found = find_buffer(root, buffer=buffer)

    if scope not in SCOPES:
        raise schedule_error(
            "set_scope.scope", f"'{scope}' is no scope.", hint=listing("scopes", SCOPES)
        )
    require_allocated(found, root)

    rewritten = root.with_function(with_buffer(root.function, replace(found, scope=scope))).module

    taken = step(buffer=buffer, scope=scope, function=function)
    return Result(rewritten, (buffer,), Step("set_scope", taken))
