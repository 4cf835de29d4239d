"""Prints a function with carets below one of its nodes."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.errors import Place
from gossamer_ir.nodes import Module
from gossamer_ir.script.print import PrintedModule, print_with_places
from gossamer_ir.script.render import nearest_span

_MAX_LINES = 40
"""The maximum number of lines of a function that is shown in full."""
_AROUND = 6
"""The number of lines before and after the place that are shown of a longer function."""


def caret_text(module: Module, place: Place) -> str:
    """Return the text of the function that contains a place, with carets below the place.

    For a long function, only the lines near the place and the heads of the enclosing statements are shown.
    The result is "" if the place has no text.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def fill(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = 1.0
    ... ''')
    >>> print(caret_text(module, ("functions", 0, "body", 0)))
    @T.prim_func
    def fill(
        x: T.handle,
        n: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(x, (n,), "float32")
        for i in T.serial(n):
        ^^^^^^^^^^^^^^^^^^^^^
            X[i] = 1.0
    >>> for line in caret_text(module, ("functions", 0)).splitlines()[:3]:
    ...     print(line)
    @T.prim_func
    def fill(
    ^^^^^^^^^
    """
    printed = print_with_places(module)
    span = nearest_span(printed.spans, place)
    if span is None:
        return ""
    text = printed.text.split("\n")
    # The span of a function begins at its decorator; the carets go below the line with its name.
    line = span.line + text[span.line - 1].startswith("@")
    end = span.end_column if span.end_line == line else len(text[line - 1])
    carets = " " * span.column + "^" * max(end - span.column, 1)
    shown: list[str] = []
    last = None
    for number in _numbers(printed, place, line=line):
        if last is not None and number > last + 1:
            shown.append("...")
        shown.append(text[number - 1])
        if number == line:
            shown.append(carets)
        last = number
    return "\n".join(shown)


def _numbers(printed: PrintedModule, place: Place, *, line: int) -> Iterable[int]:
    """Return the numbers of the lines to show, in order, counted from 1."""
    whole = printed.spans[place[:2]]
    every = range(whole.line, whole.end_line + 1)
    if len(every) <= _MAX_LINES:
        return every
    above = (printed.spans.get(place[:length]) for length in range(2, len(place)))
    kept = {span.line for span in above if span is not None} | {whole.line + 1}
    kept |= set(range(line - _AROUND, line + _AROUND + 1))
    return sorted(kept.intersection(every))
