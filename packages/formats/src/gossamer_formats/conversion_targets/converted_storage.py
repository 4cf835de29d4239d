"""The result of a conversion."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_formats.storage import Storage
from gossamer_ir.errors import FormatError
from gossamer_ir.support.arrays import Array


class ConvertedStorage(NamedTuple):
    """A converted storage. `permutation` has for each of its values its value index in the source,
    or `UNSTORED`; None if duplicates were added, or if it was not asked for."""

    storage: Storage
    permutation: Array | None


def require_same_shape(storage: Storage, source: Storage) -> None:
    """Raise `FormatError` (`format.shape`) if a storage has another shape than its source."""
    if storage.shape != source.shape:
        raise FormatError(
            "format.shape",
            f"The format '{storage.description.name}' has the shape {storage.shape} with these sizes; "
            f"expected {source.shape}.",
        )
