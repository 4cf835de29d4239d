"""Read texts of bounded size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from gossamer_ir.errors import ArgumentError

MAX_INPUT_BYTES = 1 << 28
"""The maximum size of an input in bytes."""

STANDARD_INPUT = "-"
"""The name of a file that stands for standard input."""


def read_input(file: str, *, what: str, code: str, hint: str) -> str:
    """Return the text of a file, or of standard input; raise `ArgumentError` with this code and hint if it
    cannot be read, is too long, or is not UTF-8. `what` names it in the message, such as "script"."""
    try:
        if file != STANDARD_INPUT:
            with Path(file).open("rb") as stream:
                return _read_stream(stream)
        if sys.stdin is None:
            raise ValueError("it is closed")
        return _read_stream(sys.stdin.buffer)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        if isinstance(error, UnicodeDecodeError):
            why = "it is not text"
        place = "on standard input" if file == STANDARD_INPUT else f"'{file}'"
        raise ArgumentError(
            code, f"The {what} {place} cannot be read: {why or error}.", hint=hint
        ) from error


def _read_stream(stream: BinaryIO) -> str:
    data = stream.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise ValueError(f"it has more than {MAX_INPUT_BYTES} bytes")
    return data.decode()
