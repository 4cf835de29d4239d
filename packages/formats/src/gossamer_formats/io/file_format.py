"""A format of files: its suffixes, its reader and its writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class FileFormat(NamedTuple):
    """A format of files, which a suffix identifies. The documentation has its texts."""

    suffixes: tuple[str, ...]
    read: Callable[..., Any]
    """Takes the file and `require_fits`, a function that it calls with the sizes of the file before it
    allocates memory for entries; also the `shape` if the format `takes_shape`. It returns a tensor or a
    SciPy matrix, or raises `ValueError` if the file is malformed."""
    write: Callable[..., None]
    """Takes the tensor and the file; also a bool `pattern` if the format `has_patterns`."""
    contents: str
    """Describes the file."""
    read_as: str
    """The format that `read` returns."""
    written_as: str
    """Describes the tensors that `write` stores."""
    is_of_any_ndim: bool = False
    """If false, only tensors of two dimensions are accepted."""
    has_patterns: bool = False
    takes_shape: bool = False
