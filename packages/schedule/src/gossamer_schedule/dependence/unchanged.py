"""Expressions that a rewriting evaluates again: what they read must stay as it is."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.invariants import changed_in
from gossamer_ir.nodes import For, Function, Node
from gossamer_schedule.errors import refusal


def require_unchanged(
    loop: For,
    parts: Iterable[Node],
    *,
    function: Function,
    primitive: str,
    what: str = "the extent",
) -> None:
    """Refuses a rewriting by which some expressions, which are evaluated once before a loop, are evaluated
    in its iterations, unless these write nothing that the expressions read.

    Raises `.not_proved`.
    """
    if changing := changed_in(loop.body, *parts, function=function):
        names = ", ".join(sorted(changing))
        raise refusal(
            f"{primitive}.not_proved",
            f"It is not proved that {what} of loop '{loop.var}' stays the same while it runs.",
            needs=f"{names} is not written in loop '{loop.var}'",
        )


def require_unchanged_bounds(loops: Iterable[For], *, function: Function, primitive: str) -> None:
    """`require_unchanged` of the starts and extents of loops.

    Raises `.not_proved`.
    """
    for loop in loops:
        require_unchanged(loop, (loop.start, loop.extent), function=function, primitive=primitive)
