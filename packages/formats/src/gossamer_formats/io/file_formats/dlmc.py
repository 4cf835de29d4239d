"""Patterns of sparse matrices in the files of the Deep Learning Matrix Collection (`.smtx`).

The first line has the rows, the columns and the entries, the second the offsets of the rows, the third the
columns from 0 on. There are no values. Gale et al., "Sparse GPU kernels for deep learning" (SC 2020).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

import numpy as np

from gossamer_formats.io.declared_sizes import DeclaredSizes, Sizes
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount

_MAX_HEADER_LENGTH = 1 << 10
_MAX_NUMBER_LENGTH = 24
"""The characters of a number below 2**63, and of the blanks after it."""
_NUMBERS_WRITTEN = 1 << 14


def read_dlmc(file: Path, *, require_fits: Callable[[Sizes], None]) -> SparseTensor:
    """Return the pattern in CSR, with float32 values 1; raises `ValueError`, with the line, if the file is
    malformed. `require_fits` is called before the memory for the entries is allocated."""
    # Each byte is one character, so that a line takes as much memory as in the file.
    with file.open(encoding="latin-1") as stream:
        rows, columns, entries = _header(stream.readline(_MAX_HEADER_LENGTH))
        text = file.stat().st_size
        numbers = 16 * (rows + 1 + entries)
        require_fits(DeclaredSizes(rows, columns, entries, 2 * text + numbers))
        indptr = _numbers(stream, 2, rows + 1, "offset")
        indices = _numbers(stream, 3, entries, "column")
        if stream.read(_MAX_HEADER_LENGTH).strip():
            raise ValueError("it has text after line 3; expected three lines")
    _require_offsets(indptr, entries)
    bad = (indices < 0) | (indices >= columns)
    if bad.any():
        first = int(bad.argmax())
        expected = f"0 to {columns - 1}" if columns else "none"
        raise ValueError(
            f"line 3 has the column {indices[first]} of entry {first}; expected {expected}"
        )
    index = np.int32 if max(rows, columns, entries) < 2**31 else np.int64
    arrays = {
        "indptr": adopt_array(indptr.astype(index)),
        "indices": adopt_array(indices.astype(index)),
        "data": adopt_array(np.ones(entries, np.float32)),
    }
    return tensor_of_arrays("csr", (rows, columns), arrays)


def write_dlmc(tensor: SparseTensor, file: Path, *, pattern: bool) -> None:
    """Write the pattern of a matrix. Without `pattern`, raise `FormatError` (`format.write.pattern`) for
    values other than 1."""
    tensor = tensor.tocsr()
    if not pattern:
        _require_ones(tensor)
    with file.open("w", encoding="ascii") as stream:
        stream.write(f"{tensor.shape[0]}, {tensor.shape[1]}, {tensor.nnz}\n")
        for name in ("indptr", "indices"):
            stream.writelines(_text_parts(tensor.arrays[name]))
            stream.write("\n")


def _require_ones(tensor: SparseTensor) -> None:
    values = tensor.arrays["data"]
    others = np.flatnonzero(values != 1)
    if others.size:
        first = int(others[0])
        raise FormatError(
            "format.write.pattern",
            f"The value {first} of the tensor is {values[first]}, and a file '.smtx' has no values.",
            hint="Use pattern=True to leave them out.",
        )


def _header(line: str) -> tuple[int, int, int]:
    fields = line.replace(",", " ").split()
    if len(fields) != 3 or not all(field.isascii() and field.isdigit() for field in fields):
        raise ValueError(f"line 1 is '{line.strip()[:40]}'; expected rows, columns and entries")
    rows, columns, entries = map(int, fields)
    if max(rows, columns, entries) >= 2**63:
        raise ValueError(f"line 1 is '{line.strip()[:60]}'; expected numbers below 2**63")
    return rows, columns, entries


def _numbers(stream: TextIO, line: int, count: int, what: str) -> Array:
    """Return the integers of a line."""
    text = stream.readline(_MAX_NUMBER_LENGTH * count + _MAX_HEADER_LENGTH)
    with warnings.catch_warnings():
        # NumPy warns where it stops reading because something is not an integer.
        warnings.filterwarnings("error", category=DeprecationWarning)
        try:
            blank = not text.strip()
            numbers = np.zeros(0, np.int64) if blank else np.fromstring(text, np.int64, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            raise ValueError(f"line {line} has something else than integers") from error
    if numbers.size != count:
        raise ValueError(f"line {line} has {amount(numbers.size, what)}; expected {count}")
    return numbers


def _require_offsets(indptr: Array, entries: int) -> None:
    """Require offsets from 0 to the number of entries that never decrease."""
    if indptr[0] != 0 or indptr[-1] != entries:
        raise ValueError(
            f"line 2 has offsets from {indptr[0]} to {indptr[-1]}; expected 0 to {entries}"
        )
    # Not the differences, which may overflow.
    bad = indptr[1:] < indptr[:-1]
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(
            f"line 2 has the offset {indptr[first + 1]} after {indptr[first]}; expected none that decreases"
        )


def _text_parts(numbers: Array) -> Iterable[str]:
    for start in range(0, numbers.size, _NUMBERS_WRITTEN):
        part = " ".join(map(str, numbers[start : start + _NUMBERS_WRITTEN].tolist()))
        yield part if start == 0 else f" {part}"


FILE_FORMAT = FileFormat(
    (".smtx",),
    read_dlmc,
    write_dlmc,
    contents="a pattern of the Deep Learning Matrix Collection (DLMC)",
    read_as="csr, values 1 of float32",
    written_as="the pattern; values other than 1 are refused unless `pattern=True`",
    has_patterns=True,
)
