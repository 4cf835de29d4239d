"""Programs for developers; what users install does not contain them."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the repository."""


def with_table(text: str, *, header: str, rows: Iterable[str], indent: str = "") -> str:
    """Return a document with other rows in the table that begins with this header, whose lines are
    indented."""
    before, header_line, rest = text.partition(f"{indent}{header}\n")
    if not header_line:
        raise ValueError(f"there is no table with the header {header!r}")
    _, _, after = rest.partition("\n\n")
    rule = "|" + "---|" * (header.count("|") - 1)
    table = "\n".join(f"{indent}{line}" for line in (header, rule, *rows))
    return f"{before}{table}\n\n{after}"
