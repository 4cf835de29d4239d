"""Errors of primitives: one code per reason, a hint that lists what exists, and the place."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.errors import Place, ScheduleError
from gossamer_ir.nodes import Expr
from gossamer_support import message_texts


def schedule_error(
    code: str, message: str, *, needs: str = "", hint: str = "", place: Place = ()
) -> ScheduleError:
    """Return the error with code `schedule.<code>`, where `<code>` is `<primitive>.<reason>`.

    The reason `not_proved` means that the step may be valid, but this was not proved. `needs` is then the
    condition that would have to be proved, in the syntax of scripts.

    >>> print(schedule_error("tile.not_proved", "Cannot prove that the tiles fit.", needs="n <= 8"))
    Cannot prove that the tiles fit. Needed: n <= 8. [schedule.tile.not_proved]
    """
    condition = f" Needed: {needs}." if needs else ""
    return ScheduleError(f"schedule.{code}", message + condition, hint=hint, place=place)


def text_of(expr: Expr) -> str:
    """Return the script of an expression."""
    from gossamer_ir.script import print_expr  # the printer is for errors only

    return print_expr(expr)


def quote(names: Iterable[str]) -> str:
    """Return names in quotes, in alphabetical order, for a message.

    >>> quote({"Y", "X"})
    "'X', 'Y'"
    """
    return message_texts.in_quotes(sorted(names))


def listing(what: str, names: Iterable[str]) -> str:
    """Return a sentence that lists the available names.

    >>> listing("loops", ["i", "j"])
    "Available loops: 'i', 'j'."
    """
    quoted_names = message_texts.in_quotes(names)
    return f"Available {what}: {quoted_names}." if quoted_names else f"There are no {what}."
