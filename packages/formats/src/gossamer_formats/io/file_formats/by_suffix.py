"""The formats of files by suffix: those of the library, and those that installed distributions register.

A distribution registers a format of files by an entry point of the group `gossamer.file_formats` for each
suffix, whose name is the suffix without its dot and whose object is a `FileFormat`:

    [project.entry-points."gossamer.file_formats"]
    rb = "my_package.rutherford_boeing:FILE_FORMAT"
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.file_formats import binsparse, dlmc, frostt, matrix_market, scipy_archives
from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import either
from gossamer_support.plugins import groups
from gossamer_support.plugins.named_objects import NamedObjects

FILE_FORMATS: tuple[FileFormat, ...] = (
    matrix_market.FILE_FORMAT,
    dlmc.FILE_FORMAT,
    frostt.FILE_FORMAT,
    scipy_archives.FILE_FORMAT,
    binsparse.FILE_FORMAT,
)
"""The formats of files, in the order of the documentation."""


NAMED_FILE_FORMATS: NamedObjects[FileFormat] = NamedObjects(
    groups.FILE_FORMAT_GROUP.name,
    "file format",
    expected="a gossamer_formats.FileFormat with this suffix",
    is_valid=lambda value, name: isinstance(value, FileFormat) and f".{name}" in value.suffixes,
    built_in={
        suffix.removeprefix("."): partial(lambda format: format, format)
        for format in FILE_FORMATS
        for suffix in format.suffixes
    },
)
"""The formats of files by their suffixes without the dot."""


def suffixes_in_words(formats: Iterable[FileFormat] = FILE_FORMATS) -> str:
    """Return the suffixes of formats of files for messages.

    >>> suffixes_in_words([matrix_market.FILE_FORMAT, dlmc.FILE_FORMAT])
    "'.mtx', '.mtx.gz' or '.smtx'"
    """
    return _in_words(suffix for format in formats for suffix in format.suffixes)


def suffix_of(file: Path) -> tuple[str, FileFormat]:
    """Return the suffix of a file and its format; raises `FormatError` (`format.read.suffix`).

    Raises `PluginError` if the format is that of another distribution and cannot be used: `plugin.failed`,
    `plugin.duplicate`, or `plugin.entry_point`.

    >>> suffix_of(Path("A.MTX.GZ"))[0]
    '.mtx.gz'
    """
    suffixes = [f".{name}" for name in NAMED_FILE_FORMATS.names()]
    fitting = [suffix for suffix in suffixes if file.name.lower().endswith(suffix)]
    # The longest: one suffix may be the end of another, as '.gz' is of '.mtx.gz'.
    suffix = max(fitting, key=len, default="")
    format = NAMED_FILE_FORMATS.find(suffix.removeprefix("."))
    if format is None:
        raise FormatError(
            "format.read.suffix", f"'{file}' has an unknown suffix; expected {_in_words(suffixes)}."
        )
    return suffix, format


def _in_words(suffixes: Iterable[str]) -> str:
    return either(f"'{suffix}'" for suffix in suffixes)
