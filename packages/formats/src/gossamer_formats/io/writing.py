"""Writes sparse tensors to files."""

from __future__ import annotations

import os
from pathlib import Path

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.io.file_formats.by_suffix import (
    FILE_FORMATS,
    NAMED_FILE_FORMATS,
    suffix_of,
    suffixes_in_words,
)
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.value_dtypes import NUMPY_DTYPES
from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed


@typed
def write(tensor: SparseTensor, path: str | os.PathLike[str], *, pattern: bool = False) -> None:
    """Write a tensor to a file; the suffix selects the format of the file, as for `read`.

    | suffix | `write` stores |
    |---|---|
    | `.mtx`, `.mtx.gz` | coordinates; without values if `pattern=True` |
    | `.smtx` | the pattern; values other than 1 are refused unless `pattern=True` |
    | `.tns`, `.tns.gz` | coordinates, without the shape |
    | `.npz` | a SciPy matrix in the format that `to_scipy` returns |
    | `.bsp.h5`, `.bsp.hdf5` | csr, csc, coo and dcsr as they are, others as csr; duplicates are added |

    `read` returns values with the same bits, except for the payload of NaN. With `pattern`, values are left
    out (`.mtx` and `.smtx`). `.smtx` has no values, so others than 1 are refused without it.

    Raises `FormatError`: `format.write.pattern`, `format.write.failed` if the system refuses the file,
    `format.read.suffix` for an unknown suffix, `format.dimensions`, `format.dtype` for bfloat16.

    >>> import tempfile
    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(SparseTensor(eye_array(3)), Path(folder) / "eye.smtx")
    ...     print((Path(folder) / "eye.smtx").read_text())
    3, 3, 3
    0 1 2 3
    0 1 2
    <BLANKLINE>
    """
    require_value_dtype(tensor.value_dtype, allowed=NUMPY_DTYPES)
    file = Path(path)
    suffix, format = suffix_of(file)
    if pattern and not format.has_patterns:
        others = suffixes_in_words(record for record in FILE_FORMATS if record.has_patterns)
        raise FormatError(
            "format.write.pattern",
            f"'{suffix}' files store values, so pattern=True cannot be used; use {others}.",
        )
    if tensor.ndim != 2 and not format.is_of_any_ndim:
        others = suffixes_in_words(record for record in FILE_FORMATS if record.is_of_any_ndim)
        raise FormatError(
            "format.dimensions",
            f"The tensor has {amount(tensor.ndim, 'dimension')}; '{suffix}' files hold 2.",
            hint=f"Use {others}.",
        )
    # A private copy: the arrays must not change between their check and the file.
    if tensor.is_borrowed:
        tensor = SparseTensor(tensor.storage)
    try:
        with NAMED_FILE_FORMATS.errors_of(
            suffix.removeprefix("."), doing="write a file of the", passing=(OSError,)
        ):
            if format.has_patterns:
                format.write(tensor, file, pattern=pattern)
            else:
                format.write(tensor, file)
    except OSError as error:
        raise FormatError(
            "format.write.failed", f"'{file}' cannot be written: {error.strerror or error}."
        ) from error
