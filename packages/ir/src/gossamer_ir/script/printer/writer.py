"""Writes text line by line and records the span of each place of the module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from gossamer_ir.errors import Place
from gossamer_ir.script.limits import MAX_INDENT, indent_error
from gossamer_ir.script.source import Span

_INDENT = "    "
_Item = TypeVar("_Item")


class Writer:
    """The text so far, the path of the current place, and the spans of the places written."""

    def __init__(self) -> None:
        self.spans: dict[Place, Span] = {}
        self._path: list[str | int] = []
        self._lines: list[str] = []
        self._parts: list[str] = []
        self._column = 0
        self._depth = 0

    @property
    def text(self) -> str:
        """The finished lines."""
        return "\n".join(self._lines) + "\n"

    @property
    def position(self) -> tuple[int, int]:
        """The line (from 1) and column (from 0) at which the next text is written."""
        return len(self._lines) + 1, self._column

    def put(self, text: str) -> None:
        """Append text to the current line, which is indented first if it is empty."""
        if not self._parts:
            text = _INDENT * self._depth + text
        self._parts.append(text)
        self._column += len(text)

    @contextmanager
    def at(self, *steps: str | int) -> Iterator[None]:
        """Return a context in which a place below the current one is written, whose span is recorded."""
        with self.inside(*steps):
            # After the indentation of its line.
            if not self._parts:
                self.put("")
            line, column = self.position
            yield
            self._record(line, column)

    @contextmanager
    def inside(self, *steps: str | int) -> Iterator[None]:
        """Return a context in which parts of a place are written that do not stand together, so that it has
        another span, or none."""
        self._path += steps
        yield
        del self._path[-len(steps) :]

    def separate_by_commas(self, items: Iterable[_Item]) -> Iterator[tuple[int, _Item]]:
        """Yield each item with its number for the caller to write, and write commas between them.

        >>> writer = Writer()
        >>> for number, name in writer.separate_by_commas(["I", "J"]):
        ...     writer.put(f"{name}{number}")
        >>> writer.end_line()
        >>> print(writer.text, end="")
        I0, J1
        """
        for number, item in enumerate(items):
            if number:
                self.put(", ")
            yield number, item

    def end_line(self, text: str = "") -> None:
        """End the current line, after appending a text to it."""
        if text:
            self.put(text)
        self._lines.append("".join(self._parts))
        self._parts.clear()
        self._column = 0

    @contextmanager
    def indent(self) -> Iterator[None]:
        """Return a context in which a body is written. Raises `VerifyError` (`print.depth`) if it is indented
        too deep."""
        self._depth += 1
        if self._depth > MAX_INDENT:
            raise indent_error(tuple(self._path))
        yield
        self._depth -= 1

    def _record(self, first_line: int, first_column: int) -> None:
        """Record the span of the current place, which ends at the current position."""
        line, column = self.position
        # A place that ends with its line does not extend to the next one.
        if column == 0 and self._lines:
            line, column = line - 1, len(self._lines[-1])
        self.spans[tuple(self._path)] = Span(first_line, first_column, line, column)
