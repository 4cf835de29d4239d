"""The formats of files by suffix."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.file_formats import (
    binsparse,
    dlmc,
    frostt,
    matrix_market,
    scipy_archives,
)
from gossamer_ir.errors import FormatError

FILE_FORMATS: tuple[FileFormat, ...] = (
    matrix_market.FILE_FORMAT,
    dlmc.FILE_FORMAT,
    frostt.FILE_FORMAT,
    scipy_archives.FILE_FORMAT,
    binsparse.FILE_FORMAT,
)
"""The formats of files, in the order of the documentation."""


def suffixes_in_words(formats: Iterable[FileFormat] = FILE_FORMATS) -> str:
    """Return the suffixes of formats of files for messages.

    >>> suffixes_in_words([matrix_market.FILE_FORMAT, dlmc.FILE_FORMAT])
    "'.mtx', '.mtx.gz' or '.smtx'"
    """
    *others, last = (f"'{suffix}'" for format in formats for suffix in format.suffixes)
    return f"{', '.join(others)} or {last}" if others else last


def suffix_of(file: Path) -> tuple[str, FileFormat]:
    """Return the suffix of a file and its format; raises `FormatError` (`format.read.suffix`).

    >>> suffix_of(Path("A.MTX.GZ"))[0]
    '.mtx.gz'
    """
    name = file.name.lower()
    for format in FILE_FORMATS:
        for suffix in format.suffixes:
            if name.endswith(suffix):
                return suffix, format
    raise FormatError(
        "format.read.suffix", f"'{file}' has an unknown suffix; expected {suffixes_in_words()}."
    )
