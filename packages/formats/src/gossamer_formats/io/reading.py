"""Reads sparse tensors from files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import index
from pathlib import Path
from typing import Any

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.checks.shapes import required_shape
from gossamer_formats.io.declared_sizes import require_fits
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.io.file_formats.by_suffix import NAMED_FILE_FORMATS, suffix_of
from gossamer_formats.tensors.scipy_conversion import from_scipy
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.value_dtypes import WIDE_DTYPES
from gossamer_ir.errors import FormatError
from gossamer_support.typed_calls import typed


@typed
def read(
    path: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    shape: Sequence[int] | None = None,
    max_bytes: int | None = None,
) -> SparseTensor:
    """Read a sparse tensor; the suffix of the file selects the reader.

    | suffix | file | `read` returns |
    |---|---|---|
    | `.mtx`, `.mtx.gz` | Matrix Market, by coordinates | csr |
    | `.smtx` | a pattern of the Deep Learning Matrix Collection (DLMC) | csr, values 1 of float32 |
    | `.tns`, `.tns.gz` | FROSTT, any number of dimensions | coo |
    | `.npz` | SciPy's `save_npz` | csr; coo unless it has two dimensions |
    | `.bsp.h5`, `.bsp.hdf5` | binsparse 0.1 in HDF5: CSR, CSC, COO, DCSR | its own format |

    Values are converted to `dtype`, that of a `SparseTensor`. By default float32 and float64 are kept, and
    other real numbers and patterns of Matrix Market become float64. `shape` is that of a `.tns` file, by
    default the largest coordinates; another file must have this shape. Raises `FormatError` if the file
    cannot be read.

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
    # Arguments are checked before the file is opened.
    limit = None if max_bytes is None else index(max_bytes)
    lengths = None if shape is None else required_shape(shape)
    file = Path(path)
    suffix, format = suffix_of(file)
    options: dict[str, Any] = {"require_fits": partial(require_fits, file, max_bytes=limit)}
    if format.takes_shape:
        options["shape"] = lengths
    with _reading(file):
        # Inside, because the system may refuse to look.
        _require_file(file)
        reader = partial(_read_by, format, suffix, options)
        tensor = _load(file, reader, dtype=dtype)
    if lengths not in (None, tensor.shape):
        raise FormatError(
            "format.read.shape", f"'{file}' has the shape {tensor.shape}; expected {lengths}."
        )
    return tensor


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Turn the errors of the system and of libraries about a file into a `FormatError`."""
    try:
        yield
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


def _read_by(format: FileFormat, suffix: str, options: dict[str, Any], file: Path) -> Any:
    """Return the tensor or SciPy matrix that a reader returns. Other exceptions of a plugin than those with
    which a reader refuses a file are errors of the plugin."""
    with NAMED_FILE_FORMATS.errors_of(
        suffix.removeprefix("."),
        doing="read a file of the",
        passing=(ValueError, OSError, MemoryError),
    ):
        tensor = format.read(file, **options)
        if not isinstance(tensor, SparseTensor) and not hasattr(tensor, "tocoo"):
            raise TypeError(
                f"it returned an object of type '{type(tensor).__name__}'; expected a SparseTensor or a "
                "SciPy matrix"
            )
        return tensor


def _load(file: Path, reader: Callable[[Path], Any], *, dtype: str | None) -> SparseTensor:
    try:
        tensor = reader(file)
    except FormatError as error:
        raise _error_of_file(error, file) from error
    if isinstance(tensor, SparseTensor):
        return tensor if dtype is None else tensor.astype(dtype)
    return _convert(tensor, file, dtype=dtype)


def _convert(matrix: Any, file: Path, *, dtype: str | None) -> SparseTensor:
    """Return the tensor of a SciPy matrix that was read."""
    # Patterns and integers become the dtype that represents most integers exactly.
    if dtype is None and matrix.dtype.name not in WIDE_DTYPES:
        dtype = "float64"
    try:
        return from_scipy(matrix, dtype=dtype, format="csr" if matrix.ndim == 2 else "same")
    except FormatError as error:
        raise _error_of_file(error, file) from error


def _error_of_file(error: FormatError, file: Path) -> FormatError:
    """Return the error with the name of the file, unless it has it."""
    diagnostic = error.diagnostics[0]
    # Some checks know the file, others see arrays only.
    if str(file) in diagnostic.message:
        return error
    return FormatError(diagnostic.code, f"In '{file}': {diagnostic.message}", hint=diagnostic.hint)


_DAMAGED = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, EOFError, ArithmeticError,
    IndexError, zlib.error,
)  # fmt: skip
"""The exceptions that the readers of NumPy and SciPy raise for damaged files."""

MAX_REASON_LENGTH = 200
"""Maximum number of characters that are quoted from a reader's message."""


def _require_file(file: Path) -> None:
    if not file.is_file():
        what = "is not a file" if file.exists() else "does not exist"
        raise FormatError("format.read.missing", f"'{file}' {what}; expected the path of a file.")


def _first_line(error: BaseException) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    text = reason or str(error.args[0] if error.args else error) or type(error).__name__
    return text.strip().splitlines()[0].rstrip(".")[:MAX_REASON_LENGTH]
