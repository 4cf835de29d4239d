"""Values that sampling steps draw, and references to them in arguments of later steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gossamer_ir.interchange.records import Arg, Step
from gossamer_ir.nodes import Function
from gossamer_ir.traversal.names import is_identifier
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import listing, schedule_error
from gossamer_support.as_tuple import as_tuple

REFERENCE_PREFIX = "$"
"""The prefix of a reference to a value."""

DrawnValues: TypeAlias = Mapping[str, int | str | None]


def require_value_name(name: str, root: Cursor[Function]) -> None:
    """Refuse a name for a value that is not an identifier."""
    if not is_identifier(name):
        raise schedule_error(
            f"{root.primitive}.name",
            f"'{name}' is not a valid name for a value.",
            hint="Expected an identifier. Later steps refer to it with a $ before it.",
        )


def with_values(step: Step, values: DrawnValues) -> Step:
    """Return the step with references replaced by drawn values.

    Raises `ScheduleError`: `schedule.sample.no_value`.

    >>> with_values(Step("split", {"loop": "i", "factors": (None, "$tile")}), {"tile": 8})
    Step(op='split', args={'loop': 'i', 'factors': (None, 8)})
    """
    if not any(map(is_reference, step.args.values())):
        return step
    return Step(
        step.op, {name: _with_drawn_values(value, values) for name, value in step.args.items()}
    )


def is_reference(value: Arg) -> bool:
    """Return whether an argument, or a part of it, is a reference to a drawn value."""
    parts = as_tuple(value)
    return any(isinstance(part, str) and part.startswith(REFERENCE_PREFIX) for part in parts)


def _with_drawn_values(value: Any, values: DrawnValues) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_drawn_values(part, values) for part in value)
    if not (isinstance(value, str) and value.startswith(REFERENCE_PREFIX)):
        return value
    name = value.removeprefix(REFERENCE_PREFIX)
    if name not in values:
        raise schedule_error(
            "sample.no_value",
            f"No earlier step has drawn a value '{name}'.",
            hint=listing("values", values),
        )
    return values[name]
