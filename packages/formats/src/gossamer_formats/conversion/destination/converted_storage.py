"""The result of a conversion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gossamer_formats.storage import Storage
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array


class ConvertedStorage(NamedTuple):
    """A converted storage. `permutation` has for each of its values its value index in the source,
    or `UNSTORED`; None if duplicates were added, or if it was not asked for."""

    storage: Storage
    permutation: Array | None


def require_same_shape(storage: Storage, source: Storage) -> None:
    """Raise `FormatError` (`format.shape`) if a storage has another shape than its source."""
    if storage.shape != source.shape:
        raise shape_error(storage.description, storage.shape, source.shape)


def shape_error(
    description: FormatDescription, shape: Sequence[int], expected: Sequence[int]
) -> FormatError:
    """Return the error about sizes of a format with which it has another shape than the source."""
    return FormatError(
        "format.shape",
        f"The format '{description.name}' has the shape {(*shape,)} with these sizes; expected "
        f"{(*expected,)}.",
        hint="Leave out sizes that follow from the matrix, and pass parameters of the format only.",
    )
