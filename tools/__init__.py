"""Programs for developers; what users install does not contain them."""

from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the repository."""


def with_table(text: str, *, header: str, rows: Iterable[str]) -> str:
    """Return a document with other rows in the table that begins with this header."""
    before, _, rest = text.partition(header + "\n")
    _, _, after = rest.partition("\n\n")
    rule = "|" + "---|" * (header.count("|") - 1)
    return before + "\n".join([header, rule, *rows]) + "\n\n" + after
