"""Tables of text, for a terminal and for a page."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from rich.table import Table

TableRow: TypeAlias = tuple[str, ...]


class Sheet(msgspec.Struct, frozen=True):
    """A title, the heads of the columns and the rows; an empty row is a separator. The first `words`
    columns hold words, the others numbers."""

    title: str
    columns: TableRow
    words: int = 1
    rows: list[TableRow] = msgspec.field(default_factory=list)
    note: str | None = None


def to_rich(sheet: Sheet) -> Table:
    """Return the table of a terminal."""
    table = Table(title=sheet.title, title_justify="left", caption=sheet.note)
    for number, column in enumerate(sheet.columns):
        table.add_column(column, justify="left" if number < sheet.words else "right")
    for row in sheet.rows:
        if row:
            table.add_row(*row)
        else:
            table.add_section()
    return table


def to_markdown(sheet: Sheet) -> str:
    """Return the table of a page.

    >>> print(to_markdown(Sheet("times", ("matrix", "ms"), rows=[("cora", "1.5")])))
    ### times
    <BLANKLINE>
    | matrix | ms |
    |---|--:|
    | cora | 1.5 |
    <BLANKLINE>
    """
    rule = ["---" if number < sheet.words else "--:" for number in range(len(sheet.columns))]
    lines = [line_of(sheet.columns), f"|{'|'.join(rule)}|"]
    lines += [line_of(row) for row in sheet.rows if row]
    note = "" if sheet.note is None else f"\n{sheet.note}\n"
    return f"### {sheet.title}\n\n" + "\n".join(lines) + f"\n{note}"


def line_of(row: TableRow) -> str:
    """Return one row."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
