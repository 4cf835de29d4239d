"""The kinds of files by suffix."""

from __future__ import annotations

from pathlib import Path

from gossamer_ir.errors import FormatError

KINDS = {
    ".mtx": "Matrix Market",
    ".mtx.gz": "Matrix Market",
    ".smtx": "DLMC",
    ".tns": "FROSTT",
    ".tns.gz": "FROSTT",
    ".npz": "SciPy",
    ".bsp.h5": "binsparse",
    ".bsp.hdf5": "binsparse",
}
"""The kind of a file by its suffix."""

EXPECTED = f"a file {', '.join([*KINDS][:-1])} or {[*KINDS][-1]}"


def kind_of(file: Path) -> str:
    """Return the suffix in `KINDS` that a file has; raises `FormatError` (`format.read.kind`).

    >>> kind_of(Path("A.MTX.GZ"))
    '.mtx.gz'
    """
    name = file.name.lower()
    for suffix in KINDS:
        if name.endswith(suffix):
            return suffix
    raise FormatError("format.read.kind", f"'{file}' has an unknown suffix; expected {EXPECTED}.")
