"""The contents of index arrays of the map: which there are, their order, and those of unused entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.inverse_map import InverseMap, Solved
from gossamer_ir.analysis.axes.logical_elements import map_vars
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.facts.index_arrays import is_distinct
from gossamer_ir.nodes import Binary, Distinct, Expr, FormatDescription, Load, Var
from gossamer_support.arrays import Array


def indexing_axes(description: FormatDescription, load: Load) -> tuple[str, ...]:
    """Return the axes whose coordinates index an array of the map.

    Raises `UnsupportedError` (`format.inverse`) for other indices than coordinates.
    """
    axes = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    names = [axes[index.name] for index in load.indices if isinstance(index, Var)]
    if len(names) < len(load.indices):
        raise UnsupportedError(
            "format.inverse",
            f"The array '{load.buffer}' of the format '{description.name}' is indexed by an expression; "
            "expected coordinates of axes.",
        )
    return tuple(names)


def unused_content(solved: Solved) -> int:
    """Return what unused entries of an array hold: where the contents are a logical coordinate, or that of
    its block, one that no element has."""
    return solved.extent if solved.extent is not None and _is_leading(solved.value) else 0


# Other expressions: not optimized.
def _is_leading(value: Expr) -> bool:
    """Return whether a value is a logical coordinate or its leading digit. After the last value of another
    digit, the next block begins."""
    match value:
        case Binary(op="floordiv", lhs=Var()):
            return True
    return isinstance(value, Var)


def require_contents(destination: Destination, inverse: InverseMap) -> None:
    """Raise `FormatError` (`format.order`) if the format orders an array that its map does not read."""
    for buffer in destination.orders:
        if all(buffer != load.buffer for load in inverse.contents):
            raise FormatError(
                "format.order",
                f"The format '{destination.description.name}' orders the contents of '{buffer}', which "
                "its map does not read.",
            )


def listed_contents(destination: Destination, buffer_name: str, counts: Array | None) -> Array:
    """Return the contents of an index array in the order of the format.

    `counts` has the number of elements for each possible value, None if values are not bounded. Raises
    `FormatError` (`format.order`).
    """
    if counts is None:
        raise FormatError(
            "format.order",
            f"The format '{destination.description.name}' orders the contents of '{buffer_name}', but "
            "the map does not "
            "bound them.",
        )
    listed = destination.orders[buffer_name](counts, destination.parameters)
    is_listed = np.zeros(counts.size, bool)
    is_listed[listed] = True
    if np.count_nonzero(is_listed) < listed.size or not is_listed[counts > 0].all():
        raise FormatError(
            "format.order",
            f"The order of '{buffer_name}' of the format '{destination.description.name}' leaves out "
            "contents, or has "
            "some twice.",
        )
    return listed


def listed_array(
    description: FormatDescription, buffer_name: str, listed: Array, *, size: int, unused: int
) -> Array:
    """Return an index array of `size` entries, of which the first have the listed contents and the others
    `unused`, or `unused`, `unused` + 1, ... where the format declares that values are distinct.

    >>> from gossamer_formats.descriptions.sell import sell
    >>> listed_array(sell(), "ROWS", np.array([1, 0, 2]), size=5, unused=3)
    array([1, 0, 2, 3, 4])
    """
    rest = np.full(size - listed.size, unused, np.int64)
    if declares_distinct(description, buffer_name):
        # More than `unused` may be listed: an empty dimension has a coordinate, too.
        rest = np.arange(rest.size) + max(unused, int(listed.max(initial=-1)) + 1)
    return np.concatenate((listed.astype(np.int64, copy=False), rest))


def scattered_array(
    description: FormatDescription,
    buffer_name: str,
    *,
    shape: Sequence[int],
    entries: tuple[Array, ...],
    values: Array,
    unused: int,
) -> Array:
    """Return an index array with values at some entries and `unused` in the others, or there `unused`,
    `unused` + 1, ... where the format declares that values are distinct.

    Raises `FormatError` (`format.distinct`) if they are not.
    """
    array = np.full(shape, unused, np.int64)
    array[entries] = values
    if declares_distinct(description, buffer_name):
        is_unused = np.ones(shape, np.bool_)
        is_unused[entries] = False
        array[is_unused] += np.arange(np.count_nonzero(is_unused))
        if not is_distinct(array):
            raise FormatError(
                "format.distinct",
                f"The format '{description.name}' declares that the values of '{buffer_name}' are "
                "distinct, but the elements need one of them at several entries.",
            )
    return array


def declares_distinct(description: FormatDescription, buffer_name: str) -> bool:
    """Return whether a format declares that the values of an index array are distinct."""
    return fact_index(description.facts).holds(buffer_name, Distinct)
