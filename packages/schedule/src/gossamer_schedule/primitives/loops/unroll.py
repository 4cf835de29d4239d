"""`unroll`: replace a loop of constant extent by straight-line code."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import For, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of

MAX_EXTENT = 1024
"""The largest extent to unroll: the code of longer loops would be too large to be useful."""


@primitive(stages=LOOP_STAGES)
def unroll(root: Cursor[Function], loop: str, *, function: str | None = None) -> Change:
    """Mark a serial loop of constant extent as unrolled: its body is repeated for each iteration.

    The extent is at most 1024. The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.unroll.*`:

    * `.extent`: not a constant from 0 to 1024

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
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_constant_extent(cursor)

    unrolled = replace(cursor.node, kind="unrolled")

    return Change(cursor.replace_with((unrolled,)), (loop,))


def _require_constant_extent(cursor: Cursor[For]) -> None:
    """Refuse an extent that is not known when code is generated, or so large that the code would be too."""
    extent = integer_value(cursor.node.extent)
    if extent is None or not 0 <= extent <= MAX_EXTENT:
        raise schedule_error(
            "unroll.extent",
            f"The extent of loop '{cursor.node.var}' is {text_of(cursor.node.extent)}, not a constant from "
            f"0 to {MAX_EXTENT}.",
            hint="Split it by a constant factor and unroll the inner loop.",
            place=cursor.place,
        )
