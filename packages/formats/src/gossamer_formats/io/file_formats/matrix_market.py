"""Matrix Market files of coordinates.

This module parses the header itself and reads the entries with NumPy, because `scipy.io.mmread` is not safe
on malformed files. Version 1.17.1 sometimes ends the process with a segmentation fault if a file ends in an
incomplete number (`1.0d`), reads `3.57d9519` as 3.57, and ignores a further number in a line.

NumPy is given lines of bounded length and number, because a compressed file may hold 1,000 times as much text
as it has bytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from gossamer_formats.io.declared_sizes import DeclaredSizes, Sizes
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.text_streams import (
    MAX_LINE_LENGTH,
    create_text,
    entry_problem,
    line_blocks,
    open_text,
    write_entries,
)
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.standard_formats import in_coordinates
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount, either

if TYPE_CHECKING:
    from scipy.sparse import coo_array

VALUE_FIELDS = {"real": 1, "double": 1, "integer": 1, "pattern": 0}
"""The number of values after the coordinates of an entry, by the field of the header."""

SYMMETRIES = ("general", "symmetric", "skew-symmetric")
# The headers of the SuiteSparse collection have a few kilobytes; a megabyte is skipped in no time.
_MAX_COMMENTS_LENGTH = 1 << 20
_MAX_ENTRY_LENGTH = 256
"""Before the sizes, comments and blank lines may have `_MAX_COMMENTS_LENGTH` characters in all. After them,
the text may have as many, and `_MAX_ENTRY_LENGTH` more for each entry."""

_COORDINATES = (("row", np.int64), ("column", np.int64))


class Header(NamedTuple):
    """The banner and the sizes of a file."""

    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    lines: int
    """The lines of the banner, the comments and the sizes."""

    def declared_sizes(self) -> DeclaredSizes:
        """Return the sizes of the matrix, with the entries that symmetry adds, and of the table."""
        stored = 1 if self.symmetry == "general" else 2
        size = _dtype(self).itemsize * self.entries
        return DeclaredSizes(self.rows, self.columns, stored * self.entries, size)


def read_market(file: Path, *, require_fits: Callable[[Sizes], None]) -> coo_array:
    """Return the matrix; raises `ValueError` if the file is malformed.

    `require_fits` is called with the declared sizes before memory for the entries is allocated.
    """
    with open_text(file) as stream:
        header = read_header(stream)
        # Before any entry is read: a short header can declare more than the memory holds.
        require_fits(header.declared_sizes())
        return read_entries(stream, header)


def write_market(tensor: SparseTensor, file: Path, *, pattern: bool) -> None:
    """Write the elements of a matrix in the order of the format coo; with `pattern`, without values."""
    tensor = in_coordinates(tensor)
    rows, columns = tensor.shape
    coordinates = [tensor.arrays["indices_0"], tensor.arrays["indices_1"]]
    with create_text(file) as stream:
        field = "pattern" if pattern else "real"
        stream.write(f"%%MatrixMarket matrix coordinate {field} general\n")
        stream.write(f"{rows} {columns} {tensor.nnz}\n")
        write_entries(stream, coordinates, None if pattern else tensor.arrays["data"])


def read_header(stream: TextIO) -> Header:
    """Read the banner, the comments and the sizes; raises `ValueError` if they are malformed."""
    banner = _read_line(stream).lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("it does not start with a banner %%MatrixMarket matrix")
    _, _, layout, field, symmetry = banner
    for word, words in ((layout, ("coordinate",)), (field, VALUE_FIELDS), (symmetry, SYMMETRIES)):
        if word not in words:
            raise ValueError(f"its banner says '{word}'; expected {either(words)}")
    line, lines, comments = _read_line(stream), 2, 0
    while line.startswith("%") or line.isspace():
        comments += len(line)
        if comments > _MAX_COMMENTS_LENGTH:
            raise ValueError(
                f"its comments are too long; expected at most {_MAX_COMMENTS_LENGTH} characters"
            )
        line, lines = _read_line(stream), lines + 1
    sizes = line.split()
    if len(sizes) != 3 or not all(size.isascii() and size.isdigit() for size in sizes):
        raise ValueError(f"its sizes are '{line.strip()}'; expected rows, columns and entries")
    rows, columns, entries = map(int, sizes)
    return Header(field, symmetry, rows, columns, entries, lines)


def read_entries(stream: TextIO, header: Header) -> coo_array:
    """Read the entries after the header; raises `ValueError` if they are malformed."""
    from scipy.sparse import coo_array

    entries = _read_entries(stream, header)
    if entries.size > header.entries:
        declared = amount(header.entries, "entry", "entries")
        raise ValueError(f"it declares {declared} and holds more")
    if entries.size < header.entries:
        entry_count = amount(entries.size, "entry", "entries")
        raise ValueError(f"it holds {entry_count}; expected {header.entries}")
    # As SciPy does: half of the memory for coordinates.
    index = np.int32 if max(header.rows, header.columns) < 2**31 else np.int64
    row = _coordinates("row", entries["row"], length=header.rows).astype(index)
    column = _coordinates("column", entries["column"], length=header.columns).astype(index)
    value = entries["value"] if VALUE_FIELDS[header.field] else np.ones(entries.size)
    if header.symmetry != "general":
        row, column, value = _with_mirror_entries(row, column, value, header=header)
    parts: Any = (value, (row, column))
    return coo_array(parts, shape=(header.rows, header.columns))


def _read_line(stream: TextIO) -> str:
    # A longer line is cut, and its parts are refused as sizes or as entries.
    line = stream.readline(MAX_LINE_LENGTH)
    if not line:
        raise ValueError("it ends before its entries")
    return line


def _dtype(header: Header) -> np.dtype[Any]:
    return np.dtype([*_COORDINATES, *(("value", np.float64),) * VALUE_FIELDS[header.field]])


def _read_entries(stream: TextIO, header: Header) -> Array:
    """Read the entries, and one more if the file holds more than it declares."""
    lines = _EntryLines(stream, header)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*contained no data")
        # NumPy only warns of a coordinate such as 1.5, and would truncate it.
        warnings.filterwarnings("error", category=DeprecationWarning)
        try:
            return np.loadtxt(
                lines, dtype=_dtype(header), comments="%", ndmin=1, max_rows=header.entries + 1
            )
        except (ValueError, DeprecationWarning) as error:
            problem = lines.problem()
            if problem is None and isinstance(error, ValueError):
                raise
            raise ValueError(problem or "a coordinate is not an integer") from error


class _EntryLines:
    """The lines of entries, without blank lines and comments, for which NumPy would warn."""

    def __init__(self, stream: TextIO, header: Header) -> None:
        self._stream, self._header = stream, header
        self._line, self._number = "", 0

    def __iter__(self) -> Iterator[str]:
        left = _MAX_COMMENTS_LENGTH + _MAX_ENTRY_LENGTH * self._header.entries
        for lines, first in line_blocks(self._stream, first=self._header.lines + 1):
            left -= sum(map(len, lines)) + len(lines)
            if left < 0:
                entries = amount(self._header.entries, "entry", "entries")
                raise ValueError(f"its text is too long for the {entries} that it declares")
            for number, line in enumerate(lines, first):
                if line.strip() and not line.lstrip().startswith("%"):
                    self._line, self._number = line, number
                    yield line

    def problem(self) -> str | None:
        """Return what is wrong with the last line, at which NumPy stopped; None if nothing is."""
        entry, _, _ = self._line.partition("%")
        has_value = VALUE_FIELDS[self._header.field] > 0
        problem = entry_problem(entry, coordinates=2, has_value=has_value) if entry else None
        return None if problem is None else f"line {self._number} has {problem}"


def _coordinates(name: str, coordinates: Array, *, length: int) -> Array:
    bad = (coordinates < 1) | (coordinates > length)
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(
            f"the {name} of entry {first + 1} is {coordinates[first]}; expected 1 to {length}"
        )
    return coordinates - 1


def _with_mirror_entries(
    row: Array, column: Array, value: Array, *, header: Header
) -> tuple[Array, Array, Array]:
    """Return the entries of a symmetric matrix together with those of the triangle that the file omits."""
    if header.rows != header.columns:
        raise ValueError(f"it is {header.symmetry}; expected as many rows as columns")
    # The diagonal is stored once and has no mirror image.
    is_off = row != column
    sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
    return (
        np.concatenate((row, column[is_off])),
        np.concatenate((column, row[is_off])),
        np.concatenate((value, sign * value[is_off])),
    )


FILE_FORMAT = FileFormat(
    (".mtx", ".mtx.gz"),
    read_market,
    write_market,
    contents="Matrix Market, by coordinates",
    read_as="csr",
    written_as="coordinates; without values if `pattern=True`",
    has_patterns=True,
)
