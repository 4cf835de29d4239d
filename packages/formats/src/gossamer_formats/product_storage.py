"""The storage of matrices in a format for products by operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from gossamer_formats.format import Adapter

PartsOfMatrix: TypeAlias = Callable[[tuple[int, ...], Mapping[str, int]], Sequence[Any]]
"""Takes the shape of a matrix and the conversion parameters; returns the list of formats of its parts, as
`decompose` takes it."""


class ProductStorage(Adapter, frozen=True):
    """An adapter of a format: how its matrices are stored for products."""

    parts: PartsOfMatrix | None = None
    """Returns the parts in which operators store a matrix if products with these are faster than with the
    whole matrix in this format; None if they are not."""
    uses_stats: bool = False
    """True if the default schedule over a part of a matrix depends on the statistics of the part. Parts in
    other formats share a kernel, whatever their sizes."""
