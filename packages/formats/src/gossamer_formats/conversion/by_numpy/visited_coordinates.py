"""The coordinates of one dimension that a loop nest over a tensor visits, with elements there or without."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_numpy.stored_elements import (
    coordinates_of_slots,
    enumerate_slots,
    no_slots,
)
from gossamer_formats.storage import Storage, element_count
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.core.axis_kinds import indices_of, is_full
from gossamer_ir.nodes import Axis, Expr
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class VisitedCoordinates(NamedTuple):
    """The coordinates, in the order in which they are visited, each once for the slots of axes on which it
    does not depend. `are_distinct` if loops over the axes, and over those above them, are known to visit each
    coordinate once: by the declarations of the format, and by the contents of its map."""

    coordinates: Array
    are_distinct: bool


def visited_coordinates(storage: Storage, dimension: int) -> VisitedCoordinates:
    """Return the coordinates of a dimension that a checked storage visits.

    An iteration over the axes on which the coordinate depends, and over their ancestors, visits them also
    where the axes below have no slot, as the rows of CSR.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 0, 2]), "indices": np.array([1, 0]), "data": np.ones(2)}
    >>> tensor = Storage(csr("float64"), {"m": 2, "n": 3, "nnz": 2}, arrays)
    >>> visited_coordinates(tensor, 0)
    VisitedCoordinates(coordinates=array([0, 1]), are_distinct=True)
    >>> visited_coordinates(tensor, 1)
    VisitedCoordinates(coordinates=array([1, 0]), are_distinct=False)
    """
    axes = items_by_name(storage.description.axes)
    used = _used_axes(storage, map_results(storage.description)[dimension])
    needed = {*used, *(parent for name in used for parent in ancestors(axes, name))}
    slots = no_slots()
    for name in storage.description.buffer.axes:
        if name not in needed:
            continue
        below = [axes[other] for other in used if name in ancestors(axes, other)]
        slots = enumerate_slots(storage, axes[name], slots)
        if name not in used and all(map(is_full, below)):
            # Each slot of this axis leads to the same coordinates, so one of each fiber is enough.
            slots = slots.select(_first_slots(slots.slots_by_axis, name))
    visited = coordinates_of_slots(storage, slots, dimension)
    visited = visited[(visited >= 0) & (visited < storage.shape[dimension])]
    is_declared = all(_is_distinct(storage, axes[name], is_used=name in used) for name in needed)
    is_single = is_declared and not _has_repeated(visited, storage.shape[dimension])
    return VisitedCoordinates(visited, is_single)


def _used_axes(storage: Storage, coordinate: Expr) -> list[str]:
    """Return the axes on which a coordinate depends, in the order of the buffer."""
    pairs = zip(map_vars(storage.description), storage.description.buffer.axes, strict=True)
    vars = free_vars(coordinate)
    return [axis for var, axis in pairs if var in vars]


def _first_slots(slots: dict[str, Array], axis_name: str) -> Array:
    """Return the indices of the first slot of an axis in each slot of the axes before it."""
    begins = np.zeros(slots[axis_name].size, bool)
    begins[:1] = True
    for name, axis_slots in slots.items():
        if name != axis_name:
            begins[1:] |= axis_slots[1:] != axis_slots[:-1]
    return np.flatnonzero(begins)


def _is_distinct(storage: Storage, axis: Axis, *, is_used: bool) -> bool:
    """Return whether a loop over an axis is known to visit each coordinate once. One over an axis that does
    not declare it is not, whatever its array contains."""
    if not is_used:
        return element_count(storage, axis.name) == 1
    indices = indices_of(axis)
    return indices is None or (indices.is_searchable and element_count(storage, axis.parent) == 1)


def _has_repeated(coordinates: Array, length: int) -> bool:
    return bool(coordinates.size > length or np.any(np.bincount(coordinates) > 1))
