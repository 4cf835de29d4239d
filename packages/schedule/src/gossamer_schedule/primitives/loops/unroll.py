"""`unroll`: a loop of constant extent becomes straight code."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

MAX_EXTENT = 1024
"""Longer loops are refused: the code would be too large to be of use."""


@primitive
def unroll(module: Module, loop: str, *, function: str | None = None) -> Result:
    """Marks a serial loop as unrolled.

    Raises `ScheduleError`: `schedule.unroll.extent` where the extent is no constant in
    [0, `MAX_EXTENT`], `schedule.unroll.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> blocked = split(SCALE, "i", factors=(None, 8)).module
    >>> print(body_text(blocked))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.serial(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> print(body_text(unroll(blocked, "i_1").module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.unroll(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    require_stage(module, "unroll", stages=LOOP_STAGES)
    root = find_function(module, "unroll", function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_constant_extent(cursor)

    unrolled = replace(cursor.node, kind="unrolled")

    rewritten = cursor.replaced_by((unrolled,)).module

    return Result(rewritten, (loop,), Step("unroll", step(loop=loop, function=function)))


def _require_constant_extent(cursor: Cursor) -> None:
    extent = integer_value(cursor.node.extent)
    if extent is None or not 0 <= extent <= MAX_EXTENT:
        raise schedule_error(
            "unroll.extent",
            f"Loop '{cursor.node.var}' has no constant extent of at most {MAX_EXTENT}.",
            hint="Split it by a constant factor and unroll the inner loop.",
            place=cursor.place,
        )
