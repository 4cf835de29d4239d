"""The formats of binsparse files that correspond to a format."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_formats.format import Adapter


class BinsparseFormat(Adapter, frozen=True):
    """The `names` of a format in the specification, of which the first is written, and the names that its
    index arrays have there, by their handles. Coordinates of a format with `repeats` may be repeated,
    whatever its description declares: the specification has them once."""

    names: tuple[str, ...]
    arrays: Mapping[str, str]
    repeats: bool = False
