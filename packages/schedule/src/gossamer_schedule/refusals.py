"""How a primitive says no: one code per reason, what exists instead, and the place."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.errors import Place, ScheduleError


def refusal(code: str, message: str, *, hint: str = "", place: Place = ()) -> ScheduleError:
    """The error of code `schedule.<code>`, where code is `<primitive>.<reason>`."""
    return ScheduleError(f"schedule.{code}", message, hint=hint, place=place)


def listing(what: str, names: Iterable[str]) -> str:
    """A sentence that lists what exists.

    >>> listing("loops", ["i", "j"])
    'The loops are i, j.'
    """
    found = ", ".join(names)
    return f"The {what} are {found}." if found else f"There are no {what}."
