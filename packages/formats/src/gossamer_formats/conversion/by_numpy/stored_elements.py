"""The elements that a storage holds: their logical coordinates, and where their values are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import require_nested_axes
from gossamer_formats.conversion.by_numpy.array_expressions import evaluate_arrays
from gossamer_formats.conversion.by_numpy.distinct import sorting_order
from gossamer_formats.description_sizes import evaluate
from gossamer_formats.storage import Storage, index_array
from gossamer_formats.value_dtypes import decoded_values
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.facts.index_arrays import bits_of_words
from gossamer_ir.nodes import Axis
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class Elements(NamedTuple):
    """The elements of a tensor in the order of their values.

    `coordinates` has one array for each logical dimension, `value_indices` those of the values.
    """

    coordinates: tuple[Array, ...]
    value_indices: Array


class Slots(NamedTuple):
    """The slots of the axes that were enumerated so far: for each slot of the last one its value index, the
    slot of each axis in which it is, and its coordinate along each axis."""

    value_indices: Array
    slots_by_axis: dict[str, Array]
    coordinates: dict[str, Array]

    def select(self, chosen: Array) -> Slots:
        return Slots(
            self.value_indices[chosen],
            {name: array[chosen] for name, array in self.slots_by_axis.items()},
            {name: array[chosen] for name, array in self.coordinates.items()},
        )


def stored_elements(storage: Storage) -> Elements:
    """Return the elements of a checked storage: unused slots and slots beyond the shape are left out.

    Zeros that fill a dense axis are elements here; `convert` decides about them.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 0, 2]), "indices": np.array([1, 0]), "data": np.ones(2)}
    >>> stored_elements(Storage(csr("float64"), {"m": 2, "n": 2, "nnz": 2}, arrays)).coordinates
    (array([1, 1]), array([1, 0]))
    """
    require_nested_axes(storage.description)
    axes = items_by_name(storage.description.axes)
    slots = no_slots()
    for name in storage.description.buffer.axes:
        slots = enumerate_slots(storage, axes[name], slots)
    coordinates = tuple(
        coordinates_of_slots(storage, slots, dimension)
        for dimension in range(len(map_results(storage.description)))
    )
    if storage.description.map is None:
        return Elements(coordinates, slots.value_indices)
    # A map may lead beyond the shape, as the diagonals of DIA do at their ends.
    inside = np.ones(slots.value_indices.size, bool)
    for coordinate, size in zip(coordinates, storage.shape, strict=True):
        inside &= (coordinate >= 0) & (coordinate < size)
    return Elements(tuple(array[inside] for array in coordinates), slots.value_indices[inside])


def to_dense(storage: Storage) -> Array:
    """Return the dense array of a checked storage; duplicates are added. It is float32 for bfloat16.

    >>> from gossamer_formats import csr
    >>> arrays = {"indptr": np.array([0, 2]), "indices": np.array([1, 1]), "data": np.array([2.0, 3.0])}
    >>> to_dense(Storage(csr("float64", unique=False), {"m": 1, "n": 3, "nnz": 2}, arrays))
    array([[0., 5., 0.]])
    """
    elements = stored_elements(storage)
    values = decoded_values(storage.values, storage.description.buffer.dtype)
    dense = np.zeros(storage.shape, values.dtype)
    # `dense[coordinates] += values` would keep one of several duplicates.
    np.add.at(dense, elements.coordinates, values[elements.value_indices])
    return dense


def select_elements(elements: Elements, chosen: Array) -> Elements:
    """Return the chosen elements."""
    return Elements(
        tuple(array[chosen] for array in elements.coordinates), elements.value_indices[chosen]
    )


def sorted_elements(elements: Elements) -> Elements:
    """Sort elements by their coordinates; duplicates stay in the order of the source."""
    order = sorting_order(elements.coordinates)
    return elements if order is None else select_elements(elements, order)


def no_slots() -> Slots:
    """Return the slots before any axis was enumerated: a single one."""
    return Slots(np.zeros(1, np.int64), {}, {})


def enumerate_slots(storage: Storage, axis: Axis, outer: Slots) -> Slots:
    """Return the slots of an axis within all slots of the axes before it."""
    indptr = indptr_of(axis)
    count = outer.value_indices.size
    parents = np.zeros(count, np.int64) if axis.parent is None else outer.slots_by_axis[axis.parent]
    if indptr is None:
        width = evaluate(width_of(axis), storage.sizes)
        slots = outer.select(np.repeat(np.arange(count), width))
        positions = np.tile(np.arange(width), count)
        axis_slots = np.repeat(parents, width) * width + positions
        value_indices = slots.value_indices * width + positions
    else:
        offsets = storage.arrays[indptr.handle].astype(np.int64)
        starts = offsets[parents]
        lengths = offsets[parents + 1] - starts
        slots = outer.select(np.repeat(np.arange(count), lengths))
        positions = _ranges_from_zero(lengths)
        # Offsets count the slots of all fibers, so that a slot is its own value index.
        value_indices = axis_slots = np.repeat(starts, lengths) + positions
    indices = indices_of(axis)
    coordinates = positions
    if indices is not None:
        stored = storage.arrays[indices.handle]
        slot_coordinates = _coordinates_of_bits(stored) if indices.is_mask else stored
        coordinates = slot_coordinates[axis_slots].astype(np.int64)
    inner = Slots(
        value_indices,
        {**slots.slots_by_axis, axis.name: axis_slots},
        {**slots.coordinates, axis.name: coordinates},
    )
    if indices is None or not indices.padded:
        return inner
    return inner.select(np.flatnonzero(coordinates < evaluate(axis.length, storage.sizes)))


def _coordinates_of_bits(words: Array) -> Array:
    """Return the coordinates whose bits are set in each word, one word after the other.

    >>> _coordinates_of_bits(np.array([6, 0, 1], np.uint8))
    array([1, 2, 0])
    """
    return np.nonzero(bits_of_words(words))[1]


def _ranges_from_zero(lengths: Array) -> Array:
    """Return 0, 1, ... up to each length, one run after the other.

    >>> _ranges_from_zero(np.array([2, 0, 3]))
    array([0, 1, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    positions: Array = np.arange(total) - np.repeat(ends - lengths, lengths)
    return positions


def coordinates_of_slots(storage: Storage, slots: Slots, dimension: int) -> Array:
    """Return the logical coordinates of slots in one dimension. All axes on which these depend must have been
    enumerated."""
    pairs = zip(map_vars(storage.description), storage.description.buffer.axes, strict=True)
    vars: dict[str, Array | int] = dict(storage.sizes)
    vars |= {var: slots.coordinates[name] for var, name in pairs if name in slots.coordinates}

    def elements(buffer_name: str, indices: tuple[Array, ...]) -> Array:
        return index_array(storage, buffer_name)[indices]

    result = map_results(storage.description)[dimension]
    values = evaluate_arrays(result, vars, elements=elements)
    return np.broadcast_to(values, slots.value_indices.shape)
