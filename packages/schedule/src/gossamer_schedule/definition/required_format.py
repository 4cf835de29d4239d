"""The description of a format that is given to a step as a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_ir.errors import ParseError
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format
from gossamer_ir.verify.formats import diagnostics_of_format
from gossamer_schedule.errors import schedule_error


def required_format(script: str | Callable[..., Any], code: str) -> FormatDescription:
    """Return the description in a script, with an error of this code if it has none or is not valid."""
    try:
        description = parse_format(script)
    except ParseError as error:
        reason = error.diagnostics[0].message
        raise schedule_error(code, f"The script of a format cannot be read: {reason}") from error
    diagnostics = diagnostics_of_format(description)
    if diagnostics:
        raise schedule_error(
            code, f"The description '{description.name}' is not valid: {diagnostics[0].message}"
        )
    return description
