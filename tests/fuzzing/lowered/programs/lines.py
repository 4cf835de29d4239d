"""Lines of text, appended one after the other."""

from __future__ import annotations

from typing import TypeAlias

Lines: TypeAlias = list[str]


def under(head: str, body: Lines) -> Lines:
    """The body, indented, after a line."""
    return [head, *("    " + line for line in body or ["T.evaluate(0)"])]
