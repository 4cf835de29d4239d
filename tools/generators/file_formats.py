"""The tables of file formats in the documents, and in the docstrings of `read` and `write`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.file_formats.by_suffix import FILE_FORMATS
from tools import ROOT, with_table

FOLDER = ROOT / "packages/formats/src/gossamer_formats/io"
COLUMNS: dict[str, Callable[[FileFormat], str]] = {
    "suffix": lambda format: ", ".join(f"`{suffix}`" for suffix in format.suffixes),
    "file": lambda format: format.contents,
    "`read` returns": lambda format: format.read_as,
    "`write` stores": lambda format: format.written_as,
}
TABLES = {
    ROOT / "docs/formats.md": ("suffix", "file", "`read` returns", "`write` stores"),
    ROOT / "packages/formats/README.md": ("suffix", "file", "`read` returns"),
    FOLDER / "reading.py": ("suffix", "file", "`read` returns"),
    FOLDER / "writing.py": ("suffix", "`write` stores"),
}
"""The columns of the table in each file."""


def files() -> dict[Path, str]:
    """Return each file with its table as it should be."""
    return {path: _with_table(path, columns) for path, columns in TABLES.items()}


def _with_table(path: Path, columns: tuple[str, ...]) -> str:
    indent = "    " if path.suffix == ".py" else ""
    rows = (_row(COLUMNS[column](format) for column in columns) for format in FILE_FORMATS)
    return with_table(path.read_text(), header=_row(columns), rows=rows, indent=indent)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
