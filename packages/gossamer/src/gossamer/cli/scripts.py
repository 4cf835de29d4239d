"""A program on the command line: the name of an operator, or a script's file."""

from __future__ import annotations

from pathlib import Path

from gossamer.operators import NAMES
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Module


def is_script(program: str) -> bool:
    """Whether a program is given as a file.

    >>> is_script("spmm"), is_script("programs/mine.py")
    (False, True)
    """
    return program not in NAMES and (Path(program).suffix != "" or len(Path(program).parts) > 1)


def read_script(path: str) -> Module:
    """The module of a script's file."""
    from gossamer_ir.script import parse_module

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ArgumentError(
            "option.script",
            f"The script '{path}' cannot be read: {why or error}.",
            hint=f"Give a script's file, or one of {', '.join(NAMES)}.",
        ) from error
    return parse_module(text)
