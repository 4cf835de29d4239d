"""The coordinates of elements along the axes of a format, and the contents of its index arrays.

Most follow from the inverse of the map. An axis that only indexes an array of the map (`OFFSETS[d]`,
`ROWS[s, r]`) has no coordinates of its own: they rank the distinct contents of the array, in ascending
order or in one that the format defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_numpy.array_expressions import evaluate_arrays
from gossamer_formats.conversion.by_numpy.distinct import ranks_within
from gossamer_formats.conversion.destination.contents import (
    indexing_axes,
    listed_contents,
    require_contents,
    unused_content,
)
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.inverse_map import (
    Solved,
    inverse_map,
    logical_var,
    require_map_sizes,
)
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import Axis, FormatDescription, Load
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class StoredContents(NamedTuple):
    """The contents of an index array of the map: for each element `values[element]` is stored at the
    element's coordinates along these axes. `listed` are all contents in order, where the format defines one.
    `unused` is stored in entries of no element."""

    buffer: str
    axis_names: tuple[str, ...]
    values: Array
    listed: Array | None
    unused: int


class AxisCoordinates(NamedTuple):
    """`coordinates`: those of the elements, for each axis by name. Slot axes, which do not occur in the map,
    are missing."""

    coordinates: dict[str, Array]
    contents: list[StoredContents]


def axis_coordinates(
    destination: Destination,
    logical: Sequence[Array],
    shape: Sequence[int],
    sizes: KnownSizes,
) -> AxisCoordinates:
    """Return the coordinates of elements with logical coordinates, and bind the lengths of axes.

    >>> from gossamer_formats.descriptions.dia import dia
    >>> rows, columns = np.array([0, 1]), np.array([1, 1])
    >>> sizes = KnownSizes(dia(), {"m": 2, "n": 2})
    >>> coordinates = axis_coordinates(Destination(dia()), (rows, columns), (2, 2), sizes)
    >>> coordinates.coordinates["D"], coordinates.contents[0].values, sizes.known["diagonals"]
    (array([1, 0]), array([1, 0]), 2)
    """
    description = destination.description
    axes = items_by_name(description.axes)
    require_map_sizes(description, sizes)
    inverse = inverse_map(description, sizes.known, shape)
    require_contents(destination, inverse)
    coordinates: dict[str, Array] = {}
    for var, solved in inverse.coordinates.items():
        name = _axis_of(description, var)
        if solved.extent is not None:
            sizes.bind(axes[name].length, solved.extent)
        coordinates[name] = _evaluate(solved, logical, sizes)
    along_axes = AxisCoordinates(coordinates, [])
    for load, solved in inverse.contents.items():
        contents = _stored_contents(destination, load, solved, _evaluate(solved, logical, sizes))
        _rank_contents(along_axes, contents, axes, sizes)
    _require_map(description, logical, along_axes, sizes)
    return along_axes


def _stored_contents(
    destination: Destination, load: Load, solved: Solved, values: Array
) -> StoredContents:
    listed = None
    if load.buffer in destination.orders:
        extent = solved.extent
        counts = None if extent is None else np.bincount(values, minlength=extent)
        listed = listed_contents(destination, load.buffer, counts)
    names = indexing_axes(destination.description, load)
    return StoredContents(load.buffer, names, values, listed, unused_content(solved))


def _rank_contents(
    along_axes: AxisCoordinates,
    contents: StoredContents,
    by_name: Mapping[str, Axis],
    sizes: KnownSizes,
) -> None:
    """Add contents, and the coordinates along the axes that only index them: these are ranks of contents."""
    coordinates, listed = along_axes.coordinates, contents.listed
    groups = [coordinates[name] for name in contents.axis_names if name in coordinates]
    ranks = _ranks(groups, contents.values, listed)
    total = listed.size if listed is not None else int(ranks.max(initial=-1)) + 1
    indexing = [by_name[name] for name in contents.axis_names if name not in coordinates]
    _set_digits(coordinates, indexing, ranks=ranks, total=total, sizes=sizes)
    along_axes.contents.append(contents)


def _require_map(
    description: FormatDescription,
    logical: Sequence[Array],
    along_axes: AxisCoordinates,
    sizes: KnownSizes,
) -> None:
    """Require that the map leads from the coordinates back to the logical ones: it may have gaps."""
    vars: dict[str, Array | int] = dict(sizes.known)
    for var, name in zip(map_vars(description), description.buffer.axes, strict=True):
        if name in along_axes.coordinates:
            vars[var] = along_axes.coordinates[name]
    values = {contents.buffer: contents.values for contents in along_axes.contents}
    for result, expected in zip(map_results(description), logical, strict=True):
        mapped = evaluate_arrays(result, vars, elements=lambda buffer, _: values[buffer])
        wrong = mapped != expected
        if np.any(wrong):
            first = int(np.argmax(wrong))
            element = ", ".join(str(array[first]) for array in logical)
            raise FormatError(
                "format.map",
                f"The map of the format '{description.name}' does not reach the element ({element}).",
            )


def _evaluate(solved: Solved, logical: Sequence[Array], sizes: KnownSizes) -> Array:
    vars: dict[str, Array | int] = dict(sizes.known)
    for dimension, array in enumerate(logical):
        vars[logical_var(dimension).name] = array
    # A coordinate that is constant has no dimension for the elements.
    return np.broadcast_to(evaluate_arrays(solved.value, vars), logical[0].shape)


def _axis_of(description: FormatDescription, var_name: str) -> str:
    return description.buffer.axes[map_vars(description).index(var_name)]


def _ranks(groups: list[Array], values: Array, listed: Array | None) -> Array:
    """Return the rank of each element's contents: in the list, or within its group."""
    if listed is None:
        return ranks_within(groups, [values])
    ranks = np.full(int(listed.max(initial=-1)) + 1, -1)
    ranks[listed] = np.arange(listed.size)
    return ranks[values]


def _set_digits(
    coordinates: dict[str, Array],
    axes: Sequence[Axis],
    *,
    ranks: Array,
    total: int,
    sizes: KnownSizes,
) -> None:
    """Set the coordinates of axes, of which the last varies fastest, to the digits of their ranks."""
    for axis in reversed(axes[1:]):
        size = sizes.value(axis.length)
        coordinates[axis.name] = ranks % size
        ranks, total = ranks // size, -(-total // size)
    # The outermost digit has no limit: its axis becomes as long as the ranks need.
    if axes:
        sizes.bind(axes[0].length, total)
        coordinates[axes[0].name] = ranks
