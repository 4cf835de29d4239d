"""Handles: names that follow their statements through the steps of a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import For, Iteration, Module
from gossamer_schedule.cursor.cursor_at import addressable_stmts, name_of
from gossamer_schedule.errors import listing, quote, schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult


class StmtHandle(str):
    """The name of a loop, block, iteration or iteration variable in a module of a schedule.

    In a later step, the handle refers to the statements that replace its own: `split` forwards a loop to the
    loops that it makes, `fuse` to the fused loop. Everywhere else it is the text of the name.
    """

    __slots__ = ("module",)
    module: Module

    def __new__(cls, name: str, *, module: Module) -> StmtHandle:
        handle = super().__new__(cls, name)
        handle.module = module
        return handle

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle the name only: another process does not have the module of the handle."""
        return str, (str(self),)


def forwarded_names(
    handle: StmtHandle, original: Module, results: Sequence[PrimitiveResult]
) -> tuple[str, ...]:
    """Return the names that a handle stands for after all steps, none if the statement no longer exists.

    Raises `ScheduleError`: `schedule.handle.foreign`.
    """
    names: tuple[str, ...] = (str(handle),)
    for result in _results_after(handle, original, results):
        # A name that no step forwards stands for the same statement, as long as there is one of this name.
        existing = _addressable_names(result.module)
        names = tuple(
            name
            for old in names
            for name in result.forwards.get(old, (old,) if old in existing else ())
        )
    return names


def _results_after(
    handle: StmtHandle, original: Module, results: Sequence[PrimitiveResult]
) -> Sequence[PrimitiveResult]:
    """Return the steps after the one whose module the handle was made for."""
    for count in range(len(results), 0, -1):
        if results[count - 1].module is handle.module:
            return results[count:]
    if handle.module is original:
        return results
    raise schedule_error(
        "handle.foreign",
        f"The handle '{handle}' comes from another builder, or from a step that was undone.",
        hint="Look it up again, for example by get_loops, or give the name as text.",
    )


def _addressable_names(module: Module) -> frozenset[str]:
    """Return all names that steps can address."""
    stmts = [node for function in module.functions for node in addressable_stmts(function.body)]
    vars = (name for node in stmts if isinstance(node, Iteration) for name in node.vars)
    return frozenset({*filter(None, map(name_of, stmts)), *vars})


def loop_names(module: Module) -> frozenset[str]:
    """Return the names of all loops."""
    stmts = (node for function in module.functions for node in addressable_stmts(function.body))
    return frozenset(node.var for node in stmts if isinstance(node, For))


def current_name(handle: StmtHandle, original: Module, results: Sequence[PrimitiveResult]) -> str:
    """Return the one name that a handle stands for.

    Raises `ScheduleError`: `schedule.handle.invalidated`, `schedule.handle.ambiguous`,
    `schedule.handle.foreign`.
    """
    names = forwarded_names(handle, original, results)
    if len(names) == 1:
        return names[0]
    if not names:
        raise schedule_error(
            "handle.invalidated",
            f"The statement of the handle '{handle}' no longer exists.",
            hint=listing("names", sorted(_addressable_names(results[-1].module) - {""})),
        )
    raise schedule_error(
        "handle.ambiguous",
        f"The handle '{handle}' stands for several loops.",
        hint=f"Pass one of {quote(names)}.",
    )
