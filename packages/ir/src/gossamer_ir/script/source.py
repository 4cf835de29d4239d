"""The text of a script, spans in it, and lines with carets under a span."""

from __future__ import annotations

import ast

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A range of text: lines count from 1, columns from 0 in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Source:
    """A text with the name of its file and the number of its first line there."""

    def __init__(self, text: str, *, name: str = "", first_line: int = 1) -> None:
        self.text = text
        self.name = name
        self.first_line = first_line
        self.lines = text.replace("\r\n", "\n").split("\n")

    def span_of(self, node: ast.AST) -> Span:
        """Return the span of a syntax node, whose columns Python counts in UTF-8 bytes."""
        line, end_line = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        return Span(
            line,
            self._characters(line, getattr(node, "col_offset", 0)),
            end_line,
            self._characters(end_line, getattr(node, "end_col_offset", 0)),
        )

    def carets(self, span: Span) -> str:
        """Return the first line of a span with carets below it."""
        line = self.line_text(span.line)
        end = span.end_column if span.end_line == span.line else len(line)
        width = max(end - span.column, 1)
        where = f"{self.name}:" if self.name else "line "
        head = f"{where}{span.line + self.first_line - 1}:"
        return f"{head}\n    {line}\n    {' ' * span.column}{'^' * width}"

    def line_text(self, number: int) -> str:
        """Return the line with this number, counted from 1; "" if there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def _characters(self, line: int, offset: int) -> int:
        text = self.line_text(line)
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode(errors="ignore"))
