"""A format of files: its suffixes, its reader and its writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class FileFormat(NamedTuple):
    """A format of files, which a suffix identifies.

    `read` takes the file and `require_fits`, a function that it calls with the sizes of the file before it
    allocates memory for entries. It returns a tensor or a SciPy matrix, or raises `ValueError` if the file is
    malformed. `write` takes the tensor and the file. Both also take what the flags name: `read` the
    `shape` if the file format `takes_shape`, and `write` a bool `pattern` if it `has_patterns`. A tensor is
    refused unless it has two dimensions or the file format `is_of_any_rank`.

    The texts are those of the documentation: `contents` describes the file, `read_as` the format that `read`
    returns, and `written_as` what `write` stores.
    """

    suffixes: tuple[str, ...]
    read: Callable[..., Any]
    write: Callable[..., None]
    contents: str
    read_as: str
    written_as: str
    is_of_any_rank: bool = False
    has_patterns: bool = False
    takes_shape: bool = False
