"""Read texts of bounded size."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

MAX_INPUT_BYTES = 1 << 28
"""The maximum size of an input in bytes."""


def read_text(path: str) -> str:
    """Return the text of a file; raise `OSError` if it cannot be read, and `ValueError` if it is too long or
    not UTF-8."""
    with Path(path).open("rb") as stream:
        return read_stream(stream)


def read_stream(stream: BinaryIO) -> str:
    """Return the text of a stream; raise as `read_text`."""
    data = stream.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise ValueError(f"it has more than {MAX_INPUT_BYTES} bytes")
    return data.decode()
