"""Renders the places of diagnostics on the printed module."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.errors import Diagnostic, Place, UserError
from gossamer_ir.nodes import Module

_MAX_STEPS = 20
"""The maximum number of steps of a path that is written out."""


def show_places(module: Module, reported: Iterable[Diagnostic]) -> str:
    """Return the lines of the printed module with carets below the places, in order.

    If the module cannot be printed, the paths of the places instead.
    """
    # Imported here because only errors need the printer.
    from gossamer_ir.script.print import print_with_places
    from gossamer_ir.script.render import nearest_span
    from gossamer_ir.script.source import Source

    try:
        printed = print_with_places(module)
    except (UserError, LookupError, ValueError):  # nested too deep, or a field of a wrong type
        return "\n".join(
            f"{diagnostic.code} at {path_text(diagnostic.place)}" for diagnostic in reported
        )
    source = Source(printed.text, name=module.entry)
    spans = [nearest_span(printed.spans, diagnostic.place) for diagnostic in reported]
    return "\n".join(source.carets(span) for span in dict.fromkeys(spans) if span is not None)


def path_text(place: Place) -> str:
    """Return a place as text.

    >>> path_text(("functions", 0, "body", 2, "value"))
    'functions[0].body[2].value'
    """
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place]
    if len(parts) > _MAX_STEPS:
        parts[_MAX_STEPS - 1 : -1] = ["..."]
    return "".join(parts).removeprefix(".") or "the module"
