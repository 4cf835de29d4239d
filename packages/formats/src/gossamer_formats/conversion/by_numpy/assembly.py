"""The index arrays of a format for elements with given coordinates, and their value indices.

The axes are built in the order of the buffer, each from the elements' coordinates along it
(`axis_coordinates`). A slot axis does not occur in the map (the slots `w` of SELL, the groups of SR-BCRS): it
takes the elements of the next compressed axis below it in sub-fibers of that axis' width.

The queries (how many distinct coordinates each fiber has, how large the largest is) are those of Chou,
Kjolstad and Amarasinghe, "Automatic generation of efficient sparse tensor format conversion routines" (PLDI
2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from gossamer_formats.axis_order import ancestors, axes_between, require_nested_axes
from gossamer_formats.checks.index_checks import require_word
from gossamer_formats.conversion.by_numpy.axis_coordinates import StoredContents, axis_coordinates
from gossamer_formats.conversion.by_numpy.distinct import distinct, occurrences, ranks_within
from gossamer_formats.conversion.destination.contents import listed_array, scattered_array
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.converted_storage import shape_error
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.memory.available_memory import require_memory
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, indptr_of, is_varied, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.nodes import Axis, Buffer, FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount


class Assembly(NamedTuple):
    """`sizes`: all scalar parameters; `arrays`: the index arrays by handle; `value_indices`: for each element
    the index of its value; `value_count`: the number of values."""

    sizes: dict[str, int]
    arrays: dict[str, Array]
    value_indices: Array
    value_count: int


def assemble(destination: Destination, logical: Sequence[Array], shape: Sequence[int]) -> Assembly:
    """Return the storage of elements with logical coordinates, except for their values.

    The coordinates are sorted lexicographically. Raises `FormatError` if the format cannot hold the elements.

    >>> from gossamer_formats import csr
    >>> rows, columns = np.array([0, 1, 1]), np.array([2, 0, 1])
    >>> assembled = assemble(Destination(csr()), (rows, columns), (2, 3))
    >>> assembled.arrays["indptr"], assembled.arrays["indices"], assembled.sizes
    (array([0, 1, 3]), array([2, 0, 1]), {'m': 2, 'n': 3, 'nnz': 3})
    """
    description = destination.description
    require_nested_axes(description)
    sizes = KnownSizes(description, destination.sizes)
    lengths = zip(shape_of(description), shape, strict=True)
    described = tuple([sizes.bind(expr, size) for expr, size in lengths])
    if described != tuple(shape):
        raise shape_error(description, described, shape)
    coordinates, contents = axis_coordinates(destination, logical, shape, sizes)
    builder = _Builder(description, logical, sizes, coordinates)
    for name in description.buffer.axes:
        builder.build(name)
    more_arrays = {}
    for item in contents:
        buffer = next(array for array in description.index_arrays if array.name == item.buffer)
        more_arrays[buffer.handle or buffer.name] = _contents(
            description, buffer, item=item, sizes=sizes, coordinates=coordinates
        )
    return builder.assembly(more_arrays)


def _contents(
    description: FormatDescription,
    buffer: Buffer,
    *,
    item: StoredContents,
    sizes: KnownSizes,
    coordinates: Mapping[str, Array],
) -> Array:
    shape, unused = _shape(buffer, sizes), item.unused
    if item.listed is not None:
        return listed_array(description, item.buffer, item.listed, size=prod(shape), unused=unused)
    return scattered_array(
        description,
        item.buffer,
        shape=shape,
        entries=tuple(coordinates[name] for name in item.axis_names),
        values=item.values,
        unused=unused,
    ).reshape(-1)


def _shape(buffer: Buffer, sizes: KnownSizes) -> list[int]:
    return [sizes.value(size) for size in buffer.shape]


class _Level(NamedTuple):
    """An axis that was built: each element's slot of the axis, and the number of slots."""

    slots: Array
    slot_count: int


class _Builder:
    """The axes while they are built from the outermost to the innermost."""

    def __init__(
        self,
        description: FormatDescription,
        logical: Sequence[Array],
        sizes: KnownSizes,
        coordinates: dict[str, Array],
    ) -> None:
        self._description = description
        self._axes = items_by_name(description.axes)
        self._logical = logical
        self._sizes = sizes
        self._coordinates = coordinates
        self._levels: dict[str, _Level] = {}
        self._arrays: dict[str, Array] = {}
        self._value_indices = np.zeros(logical[0].size, np.int64)
        self._value_count = 1

    def build(self, name: str) -> None:
        """Build an axis whose ancestors have been built."""
        axis = self._axes[name]
        if name not in self._coordinates:
            self._coordinates[name] = self._slot_coordinates(axis)
        self._require_range(axis)
        indptr, indices = indptr_of(axis), indices_of(axis)
        if indices is not None:
            self._build_compressed(axis, indptr, indices)
        elif indptr is not None:
            self._build_dense_varied(axis, indptr)
        else:
            width = self._sizes.value(axis.length)
            self._add_fixed(axis, self._coordinates[name], width)

    def assembly(self, more_arrays: Mapping[str, Array]) -> Assembly:
        """Return the storage after all axes have been built, with further arrays by handle."""
        count = self._value_count + self._description.buffer.extra_storage
        arrays = {**self._arrays, **more_arrays}
        return Assembly(self._sizes.known, arrays, self._value_indices, count)

    def _parent(self, axis: Axis) -> _Level:
        if axis.parent is None:
            return _Level(np.zeros(self._value_indices.size, np.int64), 1)
        return self._levels[axis.parent]

    def _add_fixed(self, axis: Axis, positions: Array, width: int) -> None:
        """Add an axis with `width` slots in every fiber, of which each element takes one."""
        parent = self._parent(axis)
        self._levels[axis.name] = _Level(
            parent.slots * width + positions, parent.slot_count * width
        )
        self._value_indices = self._value_indices * width + positions
        self._value_count *= width

    def _add_varied(self, axis: Axis, indptr: Indptr, lengths: Array, slots: Array) -> None:
        """Add an axis whose fibers have these lengths, of which each element takes a slot."""
        offsets = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        self._arrays[indptr.handle] = offsets
        total = int(offsets[-1])
        if indptr.nnz is not None:
            self._require_total(axis, total, self._sizes.bind(indptr.nnz, total))
        self._levels[axis.name] = _Level(slots, total)
        self._value_indices, self._value_count = slots, total

    def _require_total(self, axis: Axis, total: int, size: int) -> None:
        """Require the number of all slots of an axis to be the size that the caller has given."""
        if total != size:
            raise FormatError(
                "format.parameter.value",
                f"The axis '{axis.name}' of the format '{self._description.name}' has "
                f"{amount(total, 'slot')}, but its size is {size}.",
                hint="Leave out sizes that follow from the matrix.",
            )

    def _build_dense_varied(self, axis: Axis, indptr: Indptr) -> None:
        parent = self._parent(axis)
        lengths = np.zeros(parent.slot_count, np.int64)
        np.maximum.at(lengths, parent.slots, self._coordinates[axis.name] + 1)
        self._sizes.bind(axis.length, int(lengths.max(initial=0)))
        self._require_range(axis)
        # Fibers are as long as their last element needs: coordinates are positions here.
        starts = np.cumsum(lengths) - lengths
        slots = starts[parent.slots] + self._coordinates[axis.name]
        self._add_varied(axis, indptr, lengths, slots)

    def _build_compressed(self, axis: Axis, indptr: Indptr | None, indices: Indices) -> None:
        parent = self._parent(axis)
        coordinates = self._coordinates[axis.name]
        columns = [parent.slots, coordinates]
        if not indices.unique:
            columns.append(self._repetitions(axis, columns))
        distinct_slots = distinct(columns)
        parents = parent.slots[distinct_slots.firsts]
        lengths = np.bincount(parents, minlength=parent.slot_count)
        starts = np.cumsum(lengths) - lengths
        if indptr is not None:
            stored = coordinates[distinct_slots.firsts]
            if indices.is_mask:
                stored = self._words(axis, indices, stored, parents=parents, size=parent.slot_count)
            self._arrays[indices.handle] = stored
            self._add_varied(axis, indptr, lengths, distinct_slots.ranks)
            return
        width = self._sizes.bind(width_of(axis), int(lengths.max(initial=0)))
        if np.any(lengths > width):
            raise self._overflow_error(axis, lengths, width)
        require_memory(parent.slot_count * width * np.dtype(np.int64).itemsize)
        length = self._sizes.value(axis.length)
        stored = np.full(parent.slot_count * width, length, np.int64)
        positions = np.arange(distinct_slots.firsts.size) - starts[parents]
        stored[parents * width + positions] = coordinates[distinct_slots.firsts]
        self._arrays[indices.handle] = stored
        self._add_fixed(axis, positions[distinct_slots.ranks], width)

    def _words(
        self, axis: Axis, indices: Indices, coordinates: Array, *, parents: Array, size: int
    ) -> Array:
        """Return the words of all fibers, in which the bits at the coordinates are set."""
        require_word(axis, indices, length=self._sizes.value(axis.length))
        bits = np.left_shift(np.uint64(1), coordinates.astype(np.uint64))
        words = np.zeros(size, np.uint64)
        # Coordinates are sorted by fibers, so the bits of a word are together.
        firsts = np.flatnonzero(np.diff(parents, prepend=-1))
        if firsts.size:
            words[parents[firsts]] = np.bitwise_or.reduceat(bits, firsts)
        return words

    def _repetitions(self, axis: Axis, columns: list[Array]) -> Array:
        """Return the rank of each element's slot among those with the same coordinate.

        A repeated coordinate gets one slot per `width` elements, where `width` is that of the next compressed
        axis below; without such an axis, one slot per element.
        """
        below = self._next_compressed_axis(axis)
        if below is None:
            return occurrences(columns)
        width = width_of(below)
        if not self._sizes.is_known(width):
            return np.zeros(self._value_indices.size, np.int64)
        between = [self._coordinates[name] for name in axes_between(self._axes, axis, below)]
        groups = [*columns, *between]
        return self._slot_ranks(below, groups) // max(self._sizes.value(width), 1)

    def _slot_ranks(self, axis: Axis, groups: list[Array]) -> Array:
        """Return the rank of each element's slot of an axis among those of its group."""
        columns = [self._coordinates[axis.name]]
        if not _is_unique(axis):
            columns.append(self._repetitions(axis, [*groups, *columns]))
        return ranks_within(groups, columns)

    def _slot_coordinates(self, axis: Axis) -> Array:
        """Return the coordinates of a slot axis."""
        if integer_value(axis.length) == 1:
            return np.zeros(self._value_indices.size, np.int64)
        below = self._next_compressed_axis(axis)
        if below is None:
            raise UnsupportedError(
                "format.inverse",
                f"The axis '{axis.name}' of the format '{self._description.name}' does not occur in the map, "
                "and no compressed axis of fixed width is below it.",
            )
        groups = [] if axis.parent is None else [self._parent(axis).slots]
        groups += [self._coordinates[name] for name in axes_between(self._axes, axis, below)]
        return self._slot_ranks(below, groups) // max(self._sizes.value(width_of(below)), 1)

    def _next_compressed_axis(self, axis: Axis) -> Axis | None:
        """Return the next compressed axis of fixed width in the tree below an axis."""
        for name in self._description.buffer.axes:
            other = self._axes[name]
            is_below = axis.name in ancestors(self._axes, name)
            if is_below and indices_of(other) is not None and not is_varied(other):
                return other
        return None

    def _require_range(self, axis: Axis) -> None:
        if not self._sizes.is_known(axis.length):
            return
        length, coordinates = self._sizes.value(axis.length), self._coordinates[axis.name]
        outside = (coordinates < 0) | (coordinates >= length)
        if np.any(outside):
            first = int(np.argmax(outside))
            raise FormatError(
                "format.coordinate",
                f"The element {self._element(first)} has the coordinate {coordinates[first]} along the axis "
                f"'{axis.name}' of the format '{self._description.name}', whose length is {length}.",
            )

    def _element(self, number: int) -> str:
        return f"({', '.join(str(array[number]) for array in self._logical)})"

    def _overflow_error(self, axis: Axis, lengths: Array, width: int) -> FormatError:
        fiber = int(np.argmax(lengths > width))
        members = np.flatnonzero(self._parent(axis).slots == fiber)[: width + 1]
        elements = ", ".join(self._element(int(member)) for member in members[:8])
        return FormatError(
            "format.width",
            f"A fiber of axis '{axis.name}' of the format '{self._description.name}' has "
            f"{amount(width, 'slot')}, but {amount(int(lengths[fiber]), 'element')}: {elements}, ...",
        )


def _is_unique(axis: Axis) -> bool:
    indices = indices_of(axis)
    return indices is not None and indices.unique
