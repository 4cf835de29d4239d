"""The console to which commands print tables."""

from __future__ import annotations

from rich.console import Console

WIDTH = 100
"""The width in columns if the output is not a terminal."""


def table_console() -> Console:
    """Return a console for tables, which leaves the colors of numbers and words to them."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console
