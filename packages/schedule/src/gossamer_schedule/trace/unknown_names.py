"""The error for an attribute that a builder does not have."""

from __future__ import annotations

from gossamer_ir.errors import ScheduleError
from gossamer_schedule.foreign_names.hints import METHODS
from gossamer_schedule.trace.primitive_table import PRIMITIVES
from gossamer_support.message_texts import nearest


class UnknownNameError(ScheduleError, AttributeError):
    """A builder has no attribute of this name. It is also an `AttributeError`, so that `hasattr` works."""


def unknown_name_error(kind: type, name: str) -> UnknownNameError:
    """Return the error for a name that a type of builders does not have, with a hint: the same primitive by
    its name here, a similar name, or all primitives."""
    attributes = [attribute for attribute in dir(kind) if not attribute.startswith("_")]
    near = nearest(name, attributes)
    hint = METHODS.get(name, f"Did you mean {near}?" if near else "")
    return UnknownNameError(
        "schedule.builder.unknown",
        f"{kind.__name__} has no attribute '{name}'.",
        hint=hint or f"Primitives are {', '.join(PRIMITIVES)}.",
    )
