"""Values that sampling steps draw, and arguments of later steps that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer_ir.interchange.records import Arg, Step
from gossamer_ir.traversal.names import is_identifier
from gossamer_schedule.errors import listing, schedule_error

MARK = "$"
"""Before the name of a value in an argument."""

Values = Mapping[str, int | str | None]


def require_value_name(name: str, primitive: str) -> None:
    """Refuses what cannot name a value."""
    if not is_identifier(name):
        raise schedule_error(
            f"{primitive}.name",
            f"'{name}' cannot name a value.",
            hint="Expected an identifier, which later steps write with a $ before it.",
        )


def with_values(step: Step, values: Values) -> Step:
    """The step with what was drawn in place of the names of values.

    Raises `ScheduleError`: `schedule.sample.no_value`.

    >>> with_values(Step("split", {"loop": "i", "factors": (None, "$tile")}), {"tile": 8})
    Step(op='split', args={'loop': 'i', 'factors': (None, 8)})
    """
    if not any(map(is_reference, step.args.values())):
        return step
    return Step(step.op, {name: _drawn(value, values) for name, value in step.args.items()})


def is_reference(value: Arg) -> bool:
    """Whether an argument, or a part of it, stands for a value."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(part, str) and part.startswith(MARK) for part in parts)


def _drawn(value: Any, values: Values) -> Any:
    if isinstance(value, tuple):
        return tuple(_drawn(part, values) for part in value)
    if not (isinstance(value, str) and value.startswith(MARK)):
        return value
    name = value.removeprefix(MARK)
    if name not in values:
        raise schedule_error(
            "sample.no_value",
            f"No earlier step has drawn a value '{name}'.",
            hint=listing("values", values),
        )
    return values[name]
