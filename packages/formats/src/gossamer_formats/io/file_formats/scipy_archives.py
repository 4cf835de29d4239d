"""SciPy's archives of sparse matrices (`.npz`).

`scipy.sparse.load_npz` reads them. NumPy allocates an array as its header declares, and a deflated member may
hold 1,000 times as many bytes as the file, so the headers of all arrays are read first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gossamer_formats.io.declared_sizes import DeclaredSizes, Sizes
from gossamer_formats.io.file_format import FileFormat
from gossamer_formats.tensors.scipy_conversion import to_scipy
from gossamer_formats.tensors.sparse_tensor import SparseTensor

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

_POSITIONS = ("indptr", "indices", "row", "col", "coords", "offsets")
_NAMES = ("format", "_is_array", "shape", "data", *_POSITIONS)
"""The arrays that SciPy reads. Other members of an archive are never decompressed."""

_START = b"PK\x03\x04"
# SciPy's archives have six members at most, so their directory is below a kilobyte.
_MAX_READ = 1 << 17
# NumPy's own limit of dimensions from version 2 on.
_MAX_DIMENSIONS = 64


class _ArrayHeader(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    size: int
    """The bytes of the header and the elements."""


class _SmallReads:
    """A file that is read in small chunks only, because `zipfile` reads the directory of an archive at once,
    and makes an object for each of its members."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size if 0 <= size <= _MAX_READ else _MAX_READ + 1)
        if len(chunk) > _MAX_READ:
            raise ValueError(f"its directory has more than {_MAX_READ} bytes")
        return chunk


def write_archive(tensor: SparseTensor, file: Path) -> None:
    """Write a tensor as a SciPy matrix of its format, or of the one that `to_scipy` converts it to."""
    from scipy.sparse import save_npz

    with file.open("wb") as stream:
        save_npz(stream, to_scipy(tensor))


def read_archive(file: Path, *, require_fits: Callable[[Sizes], None]) -> Any:
    """Read a SciPy matrix; raise `ValueError` if the archive is malformed.

    `require_fits` is called with the declared sizes before an array is read.
    """
    from zipfile import BadZipFile, ZipFile  # imported here: takes longer than loading a kernel

    from scipy.sparse import load_npz

    with file.open("rb") as stream:
        if stream.read(len(_START)) != _START:
            raise ValueError("it is not a zip archive")
        try:
            with ZipFile(cast("IO[bytes]", _SmallReads(stream))) as archive:
                require_fits(_declared_sizes(archive))
            stream.seek(0)
            return load_npz(stream)
        except BadZipFile as error:
            raise ValueError(str(error)) from error


def _declared_sizes(archive: ZipFile) -> DeclaredSizes:
    members = set(archive.namelist())
    for name in _NAMES:
        # NumPy prefers such a member to NAME.npy, and decompresses all of it if it is not an array.
        if name in members:
            raise ValueError(f"its member '{name}' has no suffix .npy")
    headers = {
        name: _array_header(archive, archive.getinfo(f"{name}.npy"))
        for name in _NAMES
        if f"{name}.npy" in members
    }
    if "format" not in headers or "shape" not in headers or "data" not in headers:
        raise ValueError("it was not written by scipy.sparse.save_npz")
    _require_integers(headers)
    rows, columns = _matrix_shape(archive, headers["shape"])
    return DeclaredSizes(
        rows=rows,
        columns=columns,
        entries=math.prod(headers["data"].shape),
        bytes_read=sum(header.size for header in headers.values()),
    )


def _array_header(archive: ZipFile, member: ZipInfo) -> _ArrayHeader:
    """Return the header of an array, which must declare as many bytes as its member holds."""
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    name = member.filename
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ValueError(
            f"its member '{name}' has the compression method {member.compress_type}; expected 0 or 8"
        )
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"its member '{name}' has the version {version}; expected (1, 0)")
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(stream)
        size = stream.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"its member '{name}' has the dtype {dtype}; expected numbers")
    if size != member.file_size or min(shape, default=0) < 0:
        raise ValueError(f"its member '{name}' declares {size} bytes and holds {member.file_size}")
    return _ArrayHeader(shape, dtype, size)


def _require_integers(headers: Mapping[str, _ArrayHeader]) -> None:
    """Require integer index arrays: SciPy's reader would truncate floats."""
    for name in ("shape", *_POSITIONS):
        if name in headers and headers[name].dtype.kind not in "iu":
            raise ValueError(f"{name} has the dtype {headers[name].dtype}; expected integers")


def _matrix_shape(archive: ZipFile, header: _ArrayHeader) -> tuple[int, int]:
    """Return rows and columns, or zeros if there are not two dimensions: such matrices are refused later."""
    if math.prod(header.shape) > _MAX_DIMENSIONS:
        raise ValueError(f"shape has {math.prod(header.shape)} elements; expected 2")
    with archive.open("shape.npy") as stream:
        sizes = np.lib.format.read_array(stream, allow_pickle=False).ravel().tolist()
    return (max(0, sizes[0]), max(0, sizes[1])) if len(sizes) == 2 else (0, 0)


FILE_FORMAT = FileFormat(
    (".npz",),
    read_archive,
    write_archive,
    contents="SciPy's `save_npz`",
    read_as="csr; coo unless it has two dimensions",
    written_as="a SciPy matrix in the format that `to_scipy` returns",
)
