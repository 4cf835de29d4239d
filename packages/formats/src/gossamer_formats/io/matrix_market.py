"""Matrix Market files of coordinates.

This module parses the header itself and reads the entries with NumPy, because `scipy.io.mmread` is not safe
on malformed files. Version 1.17.1 sometimes ends the process with a segmentation fault if a file ends in an
incomplete number (`1.0d`), reads `3.57d9519` as 3.57, and ignores a further number in a line.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from gossamer_formats.storage import Array
from gossamer_ir.core.counted import counted

if TYPE_CHECKING:
    from scipy.sparse import coo_array

FIELDS = {"real": 1, "double": 1, "integer": 1, "pattern": 0}
"""The number of values after the coordinates of an entry, by the field of the header."""

SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_LONGEST_LINE = 1 << 16
_COORDINATES = (("row", np.int64), ("column", np.int64))


class Header(NamedTuple):
    """The banner and the sizes of a file."""

    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int


def open_market(file: Path) -> TextIO:
    """Opens a file as text, with gzip if its name ends in .gz."""
    if file.name.lower().endswith(".gz"):
        import gzip

        return gzip.open(file, "rt", encoding="utf-8", errors="replace")
    return file.open(encoding="utf-8", errors="replace")


def read_header(stream: TextIO) -> Header:
    """Reads the banner, the comments and the sizes; raises `ValueError` if they are malformed."""
    banner = _line(stream).lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("it does not start with a banner %%MatrixMarket matrix")
    _, _, layout, field, symmetry = banner
    for found, known in ((layout, ("coordinate",)), (field, FIELDS), (symmetry, SYMMETRIES)):
        if found not in known:
            raise ValueError(f"its banner says '{found}', expected {' or '.join(known)}")
    line = _line(stream)
    while line.startswith("%") or line.isspace():
        line = _line(stream)
    sizes = line.split()
    if len(sizes) != 3 or not all(size.isascii() and size.isdigit() for size in sizes):
        raise ValueError(f"its sizes are '{line.strip()}', expected rows, columns and entries")
    return Header(field, symmetry, *(int(size) for size in sizes))


def read_entries(stream: TextIO, header: Header) -> coo_array:
    """Reads the entries after the header; raises `ValueError` if they are malformed."""
    from scipy.sparse import coo_array

    has_values = FIELDS[header.field] == 1
    entries = _table(stream, has_values=has_values)
    if entries.size != header.entries:
        raise ValueError(
            f"it holds {counted(entries.size, 'entry', 'entries')}, expected {header.entries}"
        )
    index = np.int32 if max(header.rows, header.columns) < 2**31 else np.int64
    row = _coordinates("row", entries["row"], length=header.rows).astype(index)
    column = _coordinates("column", entries["column"], length=header.columns).astype(index)
    value = entries["value"] if has_values else np.ones(entries.size)
    if header.symmetry != "general":
        row, column, value = _mirrored(row, column, value, header=header)
    parts: Any = (value, (row, column))
    return coo_array(parts, shape=(header.rows, header.columns))


def _line(stream: TextIO) -> str:
    line = stream.readline(_LONGEST_LINE)
    if not line:
        raise ValueError("it ends before its entries")
    return line


def _table(stream: TextIO, *, has_values: bool) -> Array:
    dtype: Any = [*_COORDINATES, ("value", np.float64)] if has_values else list(_COORDINATES)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*contained no data")
        # NumPy only warns of a coordinate such as 1.5, and would truncate it.
        warnings.filterwarnings("error", category=DeprecationWarning)
        try:
            return np.loadtxt(stream, dtype=dtype, comments="%", ndmin=1)
        except DeprecationWarning as warning:
            raise ValueError("a coordinate is not an integer") from warning


def _coordinates(name: str, coordinates: Array, *, length: int) -> Array:
    bad = (coordinates < 1) | (coordinates > length)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"the {name} of entry {at + 1} is {coordinates[at]}, expected 1 to {length}"
        )
    return coordinates - 1


def _mirrored(
    row: Array, column: Array, value: Array, *, header: Header
) -> tuple[Array, Array, Array]:
    """The entries of a symmetric matrix together with those of the triangle that the file omits."""
    if header.rows != header.columns:
        raise ValueError(f"it is {header.symmetry}, expected as many rows as columns")
    is_off = row != column
    sign = -1.0 if header.symmetry == "skew-symmetric" else 1.0
    return (
        np.concatenate((row, column[is_off])),
        np.concatenate((column, row[is_off])),
        np.concatenate((value, sign * value[is_off])),
    )
