"""Requirements of modules and loops that many primitives share."""

from __future__ import annotations

from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import STAGES, For, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_support.message_texts import either

LOOP_STAGES = ("position", "loop")
"""The stages that have loops and blocks."""


def require_scheduled_stage(root: Cursor[Function], stages: tuple[str, ...]) -> None:
    """Refuse a module that is not at one of the stages."""
    module, primitive = root.module, root.primitive
    if module.stage not in stages:
        is_early = STAGES.index(module.stage) < min(map(STAGES.index, stages))
        raise schedule_error(
            f"{primitive}.stage",
            f"{primitive} applies to the {either(stages)} stage, and this module is of the "
            f"{module.stage} stage.",
            hint=f"Lower the module to the {stages[0]} stage before." if is_early else "",
        )


def require_between(cursor: Cursor[object], name: str, value: int, least: int, most: int) -> None:
    """Refuse a number outside of a range, as the argument `name` of a primitive.

    Raises `.<name>`.
    """
    if not least <= value <= most:
        raise schedule_error(
            f"{cursor.primitive}.{name}",
            f"{cursor.primitive} does not support {name}={value}.",
            hint=f"Expected from {least} to {most}.",
        )


def require_serial(cursor: Cursor[For]) -> None:
    """Refuse a loop that is already parallel, vectorized, unrolled or bound to threads."""
    if cursor.node.kind != "serial":
        raise schedule_error(
            f"{cursor.primitive}.kind",
            f"Loop '{cursor.node.var}' is {cursor.node.kind}, and {cursor.primitive} needs a serial loop.",
            hint=f"Apply {cursor.primitive} before the loop is made {cursor.node.kind}.",
        )


def require_zero_start(cursor: Cursor[For]) -> None:
    """Refuse a loop that does not start at 0.

    Raises `.start`.
    """
    if integer_value(cursor.node.start) != 0:
        raise schedule_error(
            f"{cursor.primitive}.start",
            f"Loop '{cursor.node.var}' starts at {text_of(cursor.node.start)}, and {cursor.primitive} needs "
            "a loop that starts at 0.",
            place=cursor.place,
        )
