"""The arguments of a call of a primitive, by their names in its step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer_schedule.definition.arguments import (
    arguments_by_name,
    normalized_value,
    op_of,
    value_text,
    variadic_argument,
)
from gossamer_schedule.errors import schedule_error


def call_arguments(
    primitive: Callable[..., Any],
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
    *,
    function: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of a call by name, with values as steps have them. `function` applies to a call
    that names none.

    Raises `ScheduleError`: `schedule.replay.no_primitive`, `schedule.replay.arguments`.

    >>> from gossamer_schedule import split
    >>> call_arguments(split, ("i",), {"factors": [None, 8]})
    {'loop': 'i', 'function': None, 'factors': (None, 8)}
    """
    if not (callable(primitive) and hasattr(primitive, "op")):
        raise schedule_error(
            "replay.no_primitive",
            f"A primitive is given as {value_text(primitive)}; expected its name.",
        )
    positional = arguments_by_name(primitive, args)
    # A variadic argument is always among the positional ones: empty, if it is given by name.
    variadic = variadic_argument(primitive)
    repeated = [
        name for name in keywords if name in positional and (name != variadic or positional[name])
    ]
    if repeated:
        raise schedule_error(
            "replay.arguments", f"{op_of(primitive)} is given argument '{repeated[0]}' twice."
        )
    named = {**positional, "function": function, **keywords}
    return {name: normalize_if_valid(value) for name, value in named.items()}


def normalize_if_valid(value: Any) -> Any:
    """Return a value as `normalized_value` does, or unchanged if it is invalid: the primitive refuses it with
    a better error."""
    try:
        return normalized_value(value)
    except (TypeError, RecursionError):
        return value
