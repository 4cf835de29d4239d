"""Writes sparse tensors to files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from gossamer_formats.io.binsparse import write_binsparse
from gossamer_formats.io.dlmc import write_dlmc
from gossamer_formats.io.file_kinds import KINDS, kind_of
from gossamer_formats.io.frostt import write_frostt
from gossamer_formats.io.matrix_market import write_market
from gossamer_formats.io.scipy_archives import write_archive
from gossamer_formats.io.standard_formats import in_one_of, is_sorted_and_unique
from gossamer_formats.tensor import SparseTensor, convert
from gossamer_ir.errors import FormatError
from gossamer_ir.support.counted import counted
from gossamer_ir.support.typed_calls import typed

_WITH_PATTERNS = (".mtx", ".mtx.gz", ".smtx")


@typed
def write(tensor: SparseTensor, path: str | os.PathLike[str], *, pattern: bool = False) -> None:
    """Write a tensor to a file; the suffix selects the format of the file, as for `read`.

    | suffix | what is written |
    |---|---|
    | `.mtx`, `.mtx.gz` | a matrix by coordinates |
    | `.smtx` | the pattern of a matrix in CSR, without values |
    | `.tns`, `.tns.gz` | coordinates of any number of dimensions, without the shape |
    | `.npz` | SciPy's archive of a matrix, in the format that `to_scipy` returns |
    | `.bsp.h5` | binsparse: a matrix in csr, csc, coo or dcsr, others in csr; duplicates are added |

    `read` returns values with the same bits, except for the payload of NaN. With `pattern`, values are left
    out (`.mtx` and `.smtx`). `.smtx` has no values, so others than 1 are refused without it.

    Raises `FormatError`: `format.write.pattern`, `format.write.failed` if the system refuses the file,
    `format.read.kind` for an unknown suffix, `format.dimensions`.

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
    file = Path(path)
    kind = kind_of(file)
    if pattern and kind not in _WITH_PATTERNS:
        raise FormatError(
            "format.write.pattern",
            f"A file {kind} has values, so a pattern cannot be written to it; expected a file "
            f"{', '.join(_WITH_PATTERNS)}.",
        )
    if KINDS[kind] != "FROSTT" and tensor.ndim != 2:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {counted(tensor.ndim, 'dimension')}; a file {kind} holds 2.",
            hint="Write a file .tns.",
        )
    if tensor.is_borrowed:
        tensor = SparseTensor(tensor.storage)
    try:
        _write(tensor, file, kind, pattern=pattern)
    except OSError as error:
        raise FormatError(
            "format.write.failed", f"'{file}' cannot be written: {error.strerror or error}."
        ) from error


def _write(tensor: SparseTensor, file: Path, kind: str, *, pattern: bool) -> None:
    match KINDS[kind]:
        case "Matrix Market":
            write_market(in_one_of(tensor, ("coo",)), file, pattern=pattern)
        case "FROSTT":
            write_frostt(in_one_of(tensor, ("coo",)), file)
        case "DLMC":
            found = in_one_of(tensor, ("csr",))
            if not pattern:
                _require_ones(found)
            write_dlmc(found, file)
        case "SciPy":
            write_archive(tensor, file)
        case "binsparse":
            found = in_one_of(tensor, ("csr", "csc", "coo", "dcsr"))
            write_binsparse(_sorted(found), file)


def _require_ones(tensor: SparseTensor) -> None:
    values = tensor.arrays["data"]
    others = np.flatnonzero(values != 1)
    if others.size:
        at = int(others[0])
        raise FormatError(
            "format.write.pattern",
            f"The value {at} of the tensor is {values[at]}, and a file .smtx has no values.",
            hint="Use pattern=True to leave them out.",
        )


def _sorted(tensor: SparseTensor) -> SparseTensor:
    """Return the tensor with sorted coordinates and without duplicates, as binsparse requires."""
    # Coordinates of coo may be repeated, whatever the description declares.
    if tensor.format.name != "coo" and is_sorted_and_unique(tensor):
        return tensor
    return convert(tensor, tensor.format.name).tensor
