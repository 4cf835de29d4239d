"""Reads sparse matrices from Matrix Market files (`.mtx`, `.mtx.gz`) and SciPy's `.npz`."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from functools import partial
from operator import index
from pathlib import Path
from typing import Any

from gossamer_formats.checks.storage_checks import VALUE_DTYPES, require_value_dtype
from gossamer_formats.io.declared_sizes import DeclaredSizes, require_fits
from gossamer_formats.io.matrix_market import open_market, read_entries, read_header
from gossamer_formats.io.scipy_archives import read_archive
from gossamer_formats.io.scipy_conversion import from_scipy
from gossamer_formats.tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_ir.support.typed_calls import typed


@typed
def read(
    path: str | os.PathLike[str], *, dtype: str | None = None, max_bytes: int | None = None
) -> SparseTensor:
    """Read a sparse matrix as CSR; the suffix of the file selects the reader.

    Values are converted to `dtype` (float32 or float64). By default float32 and float64 are kept, and
    other real numbers and patterns become float64. Raises `FormatError` if the file cannot be read.

    `max_bytes` bounds the memory that reading takes at its peak. It is estimated from the sizes that the file
    declares, before memory is allocated for entries, and the reader reads no more than they declare. The
    default is 256 times the size of the file, but at least 512 MiB. A file that takes more, or more memory
    than the machine, the cgroup and `RLIMIT_AS` leave, is refused.

    >>> import tempfile
    >>> text = '''%%MatrixMarket matrix coordinate real general
    ... 2 3 2
    ... 1 3 5.0
    ... 2 1 -1.0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "small.mtx"
    ...     _ = file.write_text(text)
    ...     read(file, dtype="float32")
    SparseTensor(csr, 2 by 3, 2 nonzeros, float32, 28 bytes)
    """
    if dtype is not None:
        require_value_dtype(dtype)
    limit = None if max_bytes is None else index(max_bytes)
    file = Path(path)
    reader = _reader_of(file)
    check = partial(require_fits, file, max_bytes=limit)
    try:
        _require_file(file)
        return _load(file, partial(reader, require_fits=check), dtype=dtype)
    except MemoryError as error:
        raise FormatError(
            "format.read.memory", f"'{file}' needs more memory than is available."
        ) from error
    except _DAMAGED as error:
        raise FormatError(
            "format.read.malformed",
            f"'{file}' cannot be read: {_first_line(error)}.",
            hint="Check that the file is complete and has the right suffix.",
        ) from error


def _load(file: Path, reader: Callable[[Path], Any], *, dtype: str | None) -> SparseTensor:
    matrix = reader(file)
    if dtype is None and matrix.dtype.name not in VALUE_DTYPES:
        dtype = "float64"
    try:
        return from_scipy(matrix, dtype=dtype)
    except FormatError as error:
        diagnostic = error.diagnostics[0]
        raise FormatError(
            diagnostic.code, f"In '{file}', {diagnostic.message}", hint=diagnostic.hint
        ) from error


_DAMAGED = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, EOFError, ArithmeticError,
    IndexError, zlib.error,
)  # fmt: skip
"""The exceptions that the readers of NumPy and SciPy raise for damaged files."""

LONGEST_REASON = 200
"""Maximum number of characters that are quoted from a reader's message."""

_KINDS = "a file .mtx, .mtx.gz or .npz"


def _require_file(file: Path) -> None:
    if not file.is_file():
        what = "is not a file" if file.exists() else "does not exist"
        raise FormatError("format.read.missing", f"'{file}' {what}; expected {_KINDS}.")


def _read_market(file: Path, *, require_fits: Callable[[DeclaredSizes], None]) -> Any:
    with open_market(file) as stream:
        header = read_header(stream)
        # Before any entry is read: a short header can declare more than the memory holds.
        require_fits(header.declared())
        return read_entries(stream, header)


def _reader_of(file: Path) -> Callable[..., Any]:
    name = file.name.lower()
    for suffix, reader in (
        (".mtx", _read_market),
        (".mtx.gz", _read_market),
        (".npz", read_archive),
    ):
        if name.endswith(suffix):
            return reader
    raise FormatError("format.read.kind", f"'{file}' has an unknown suffix; expected {_KINDS}.")


def _first_line(error: BaseException) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    text = reason or str(error.args[0] if error.args else error) or type(error).__name__
    return text.strip().splitlines()[0].rstrip(".")[:LONGEST_REASON]
