"""The result of a conversion."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_formats.storage import Array, Storage


class ConvertedStorage(NamedTuple):
    """A converted storage. `permutation` has for each of its values the position of the value in the source,
    or `UNSTORED`; None if duplicates were added, or if it was not asked for."""

    storage: Storage
    permutation: Array | None
