"""The sizes that a file declares or holds, and the memory that reading it takes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from gossamer_formats.memory.available_memory import fits_in_memory
from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import amount

# Small files compress best: a matrix with one value repeated shrinks more than 256 times. Half a
# gigabyte can be read without harm on machines that SciPy is used on.
MIN_DEFAULT = 512 << 20
DEFAULT_RATIO = 256
"""The default of `max_bytes` is this many times the size of the file, but at least `MIN_DEFAULT`.
Matrices of random entries took 2 to 7 times the size of their files, text and archives, compressed or not."""

_CSR_COPIES = 3
"""The copies of the CSR arrays that may exist at once, as measured: SciPy's conversion and the tensor's own
copy, and one of the coordinates or of the temporary arrays of the conversion."""


_COORDINATE_COPIES = 4
"""The copies of coordinates and values that may exist at once: the blocks that were read, the arrays made of
them, those sorted, and the tensor's own."""


class Sizes(Protocol):
    """Sizes that a file declares, before the memory for its entries is allocated."""

    def memory(self) -> int:
        """Return about how many bytes reading takes at its peak."""
        ...

    def to_text(self) -> str:
        """Return the sizes in words, after the name of the file."""
        ...


class DeclaredSizes(NamedTuple):
    """The size of a matrix, and of the arrays that the reader makes before it converts them to CSR."""

    rows: int
    columns: int
    entries: int
    """Entries of the matrix that is read, with those that symmetry adds."""
    bytes_read: int

    def memory(self) -> int:
        """Return about how many bytes reading takes at its peak."""
        # SciPy chooses the narrower index type if all coordinates and offsets fit.
        index = 4 if max(self.rows, self.columns, self.entries) < 2**31 else 8
        csr = index * (self.rows + 1) + (8 + index) * self.entries
        return self.bytes_read + _CSR_COPIES * csr

    def to_text(self) -> str:
        """Return the sizes in words, after the name of the file."""
        rows, entries = amount(self.rows, "row"), amount(self.entries, "entry", "entries")
        return f"declares {rows} and {entries}"


class EntriesRead(NamedTuple):
    """The entries read so far from a file that declares no sizes, by coordinates."""

    ndim: int
    entries: int

    def memory(self) -> int:
        """Return about how many bytes reading takes at its peak."""
        return _COORDINATE_COPIES * 8 * (self.ndim + 1) * self.entries

    def to_text(self) -> str:
        """Return the sizes in words, after the name of the file."""
        entries = amount(self.entries, "entry", "entries")
        return f"holds {entries} or more of {amount(self.ndim, 'dimension')}"


def default_max_bytes(file_size: int) -> int:
    """Return the default of `max_bytes` for a file of this size.

    >>> default_max_bytes(66) == 512 * 2**20, default_max_bytes(2**30) == 256 * 2**30
    (True, True)
    """
    return max(MIN_DEFAULT, DEFAULT_RATIO * file_size)


def require_fits(file: Path, declared: Sizes, *, max_bytes: int | None) -> None:
    """Raise a `FormatError` if reading takes more than `max_bytes`, or more memory than is available.

    It is called before anything is allocated for the entries.
    """
    needed = declared.memory()
    needs = f"'{file}' {declared.to_text()}; reading it takes about {needed} bytes"
    if not fits_in_memory(needed):
        raise FormatError(
            "format.read.memory",
            f"{needs}, more than the memory that is available.",
            hint="Free memory, or raise the limit of the cgroup or of ulimit -v.",
        )
    limit = default_max_bytes(file.stat().st_size) if max_bytes is None else max_bytes
    if needed > limit:
        raise FormatError(
            "format.read.max_bytes",
            f"{needs}, and max_bytes is {limit}.",
            hint="Give a larger max_bytes (on the command line, --max-bytes) if you trust the file.",
        )
