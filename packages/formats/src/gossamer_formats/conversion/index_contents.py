"""The contents of index arrays of the map, with those of unused places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.storage import Array
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import Distinct, FormatDescription
from gossamer_ir.support.index_arrays import is_distinct
from gossamer_ir.traversal.fact_index import fact_index


def listed_array(
    description: FormatDescription, buffer: str, listed: Array, *, size: int, unused: int
) -> Array:
    """Return an index array of `size` places, of which the first have the listed contents and the others
    `unused`, or `unused`, `unused` + 1, ... where the format declares that values are distinct.

    >>> from gossamer_formats.descriptions.sell import sell
    >>> listed_array(sell(), "ROWS", np.array([1, 0, 2]), size=5, unused=3)
    array([1, 0, 2, 3, 4])
    """
    rest = np.full(size - listed.size, unused, np.int64)
    if _are_distinct(description, buffer):
        # More than `unused` may be listed: an empty dimension has a number, too.
        rest = np.arange(rest.size) + max(unused, int(listed.max(initial=-1)) + 1)
    return np.concatenate((listed.astype(np.int64, copy=False), rest))


def placed_array(
    description: FormatDescription,
    buffer: str,
    *,
    shape: Sequence[int],
    places: tuple[Array, ...],
    values: Array,
    unused: int,
) -> Array:
    """Return an index array with values in some places and `unused` in the others, or there `unused`,
    `unused` + 1, ... where the format declares that values are distinct.

    Raises `FormatError` (`format.indices.repeated`) if they are not.
    """
    array = np.full(shape, unused, np.int64)
    array[places] = values
    if _are_distinct(description, buffer):
        is_unused = np.ones(shape, np.bool_)
        is_unused[places] = False
        array[is_unused] += np.arange(np.count_nonzero(is_unused))
        if not is_distinct(array):
            raise FormatError(
                "format.indices.repeated",
                f"The format '{description.name}' declares that the values of '{buffer}' are distinct, but "
                "the elements need one of them in several places.",
            )
    return array


def _are_distinct(description: FormatDescription, buffer: str) -> bool:
    return fact_index(description.facts).holds(buffer, Distinct)
