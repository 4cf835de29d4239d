"""The axes of a running function: the elements of each fiber and their coordinates.

An *element* of an axis is numbered over the whole axis, in storage order; a *position* is relative
to its fiber. The elements of a root axis are one fiber, that of parent element 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np

from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interpret.memory.values import storage_type
from gossamer_ir.nodes import (
    Axis,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
)
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount

Evaluate: TypeAlias = Callable[[Expr], int]


class Level(msgspec.Struct, frozen=True, eq=False):
    """An axis with its arrays."""

    name: str
    parent: str | None
    length: int
    size: int
    """The number of all elements."""
    width: int | None = None
    """None if the axis is varied."""
    indptr: list[int] | None = None
    indices: list[int] | None = None
    """None if the axis is dense."""
    is_padded: bool = False
    is_searchable: bool = True

    def count(self, parent: int) -> int:
        """Return the number of positions in the fiber of a parent's element."""
        if self.width is not None:
            return self.width
        assert self.indptr is not None
        return self.indptr[parent + 1] - self.indptr[parent]

    def first(self, parent: int) -> int:
        """Return the first element of the fiber of a parent's element."""
        if self.width is not None:
            return parent * self.width
        assert self.indptr is not None
        return self.indptr[parent]

    def coordinate(self, parent: int, position: int) -> int:
        """Return the coordinate at a position."""
        if self.indices is None:
            return position
        return self.indices[self.first(parent) + position]

    def is_element(self, coordinate: int) -> bool:
        """Return whether a slot with this coordinate is an element: unused slots of padded axes hold
        `length`."""
        return not (self.is_padded and coordinate == self.length)

    def find(self, parent: int, coordinate: int) -> int | None:
        """Return the position of a coordinate in a fiber, None if it is absent.

        A coordinate outside of a dense fixed axis is returned as it is; the bounds check reports it.
        """
        if self.indices is None:
            # A varied fiber has no elements beyond its length, even if the buffer has others after it.
            is_absent = self.width is None and not 0 <= coordinate < self.count(parent)
            return None if is_absent else coordinate
        return self._search(parent, coordinate)

    def _search(self, parent: int, coordinate: int) -> int | None:
        assert self.indices is not None
        if not self.is_searchable:
            raise UnsupportedError(
                "interpret.unsorted_lookup",
                f"The coordinate {coordinate} is looked up in axis '{self.name}', "
                "which is not sorted and unique.",
                hint="Iterate the axis, or declare it sorted and unique.",
            )
        # A search for the coordinate of padding finds nothing.
        if not self.is_element(coordinate):
            return None
        first = self.first(parent)
        slots = self.indices[first : first + self.count(parent)]
        return slots.index(coordinate) if coordinate in slots else None


class Levels(dict[str, Level]):
    """The levels of a function's axes by name, made on first use."""

    def __init__(
        self, axes: tuple[Axis, ...], *, arrays: Mapping[str, Array], evaluate: Evaluate
    ) -> None:
        super().__init__()
        self._axes = items_by_name(axes)
        self._arrays = arrays
        self._evaluate = evaluate

    def __missing__(self, name: str) -> Level:
        axis = self._axes[name]
        level = AXIS_LEVELS[type(axis)](axis, self)
        self[name] = level
        return level

    def number(self, expr: Expr) -> int:
        """Return the value of a size; raises `ArgumentError` if it is negative."""
        value = self._evaluate(expr)
        if value < 0:
            raise ArgumentError("interpret.size", f"A size is {value}, which is negative.")
        return value

    def parent_size(self, axis: Axis) -> int:
        """Return the number of fibers of an axis."""
        return self[axis.parent].size if axis.parent is not None else 1

    def indptr(self, axis: DenseVaried | CompressedVaried | BitmaskVaried) -> list[int]:
        """Return the checked indptr of a varied axis."""
        array = self._index_array(axis.indptr, axis.indptr_dtype, self.parent_size(axis) + 1)
        offsets: list[int] = array.tolist()
        if offsets[0] != 0 or np.any(array[1:] < array[:-1]):
            raise ArgumentError(
                "interpret.indptr", f"'{axis.indptr}' does not start at 0, or decreases."
            )
        if axis.nnz is not None and self.number(axis.nnz) != offsets[-1]:
            raise ArgumentError(
                "interpret.indptr",
                f"'{axis.indptr}' ends with {offsets[-1]}, but axis '{axis.name}' has "
                f"{amount(self.number(axis.nnz), 'element')}.",
            )
        return offsets

    def indices(self, axis: CompressedFixed | CompressedVaried, size: int) -> list[int]:
        """Return the coordinates in all slots of a compressed axis."""
        array = self._index_array(axis.indices, axis.indices_dtype, size)
        coordinates: list[int] = array.tolist()
        return coordinates

    def words(self, axis: BitmaskVaried) -> list[int]:
        """Return the word of each fiber of a bitmask."""
        words: list[int] = self._index_array(
            axis.words, axis.words_dtype, self.parent_size(axis)
        ).tolist()
        return words

    def _index_array(self, handle: str, dtype: str, size: int) -> Any:
        array = self._arrays[handle]
        if array.dtype != storage_type(dtype) or array.size != size:
            raise ArgumentError(
                "interpret.argument",
                f"'{handle}' has {amount(array.size, 'element')} of {array.dtype}; "
                f"expected {size} of {dtype}.",
            )
        return array.reshape(-1)


def _dense_fixed(axis: DenseFixed, levels: Levels) -> Level:
    length = levels.number(axis.length)
    size = length * levels.parent_size(axis)
    return Level(axis.name, axis.parent, length, size, width=length)


def _dense_varied(axis: DenseVaried, levels: Levels) -> Level:
    indptr = levels.indptr(axis)
    length = levels.number(axis.length)
    return Level(axis.name, axis.parent, length, indptr[-1], indptr=indptr)


def _compressed_fixed(axis: CompressedFixed, levels: Levels) -> Level:
    width = levels.number(axis.width)
    size = width * levels.parent_size(axis)
    return Level(
        axis.name,
        axis.parent,
        levels.number(axis.length),
        size,
        width=width,
        indices=levels.indices(axis, size),
        is_padded=axis.padded,
        is_searchable=axis.sorted and axis.unique,
    )


def _compressed_varied(axis: CompressedVaried, levels: Levels) -> Level:
    indptr = levels.indptr(axis)
    return Level(
        axis.name,
        axis.parent,
        levels.number(axis.length),
        indptr[-1],
        indptr=indptr,
        indices=levels.indices(axis, indptr[-1]),
        is_padded=axis.padded,
        is_searchable=axis.sorted and axis.unique,
    )


def _bitmask_varied(axis: BitmaskVaried, levels: Levels) -> Level:
    indptr = levels.indptr(axis)
    words = levels.words(axis)
    indices: list[int] = []
    for fiber, word in enumerate(words):
        bits = [bit for bit in range(word.bit_length()) if word >> bit & 1]
        indices += bits
        if len(indices) != indptr[fiber + 1]:
            raise ArgumentError(
                "interpret.words",
                f"Element {fiber} of '{axis.words}' has {amount(len(bits), 'bit')} set; expected "
                f"{indptr[fiber + 1] - indptr[fiber]}.",
            )
    length = levels.number(axis.length)
    return Level(axis.name, axis.parent, length, indptr[-1], indptr=indptr, indices=indices)


AXIS_LEVELS: dict[type, Callable[[Any, Levels], Level]] = {
    DenseFixed: _dense_fixed,
    DenseVaried: _dense_varied,
    CompressedFixed: _compressed_fixed,
    CompressedVaried: _compressed_varied,
    BitmaskVaried: _bitmask_varied,
}
