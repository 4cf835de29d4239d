"""The picture of a small tensor beside the arrays that store it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gossamer_formats import Array, Decomposition, Part, SparseTensor
from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_numpy.stored_elements import (
    Slots,
    coordinates_of_slots,
    enumerate_slots,
    no_slots,
    stored_elements,
)
from gossamer_formats.description_sizes import evaluate
from gossamer_formats.storage import Storage, values_handle
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.nodes import Axis
from gossamer_support.items_by_name import items_by_name
from tools.drawing.svg import CELL, GAP, MARGIN, BoxContent, box, drawing, text

LETTER = 8
"""The width of a letter of an array's name."""

BETWEEN = 8
"""The room between two blocks of an array."""

BoxGrid: TypeAlias = Sequence[Sequence[BoxContent]]
"""Some lines of cells, below each other."""


class Drawn(NamedTuple):
    """An array: its name, and blocks of cells, side by side. A heading has no blocks."""

    name: str
    blocks: Sequence[BoxGrid] = ()

    @property
    def width(self) -> int:
        cells = sum(max(map(len, block), default=0) for block in self.blocks)
        return cells * CELL + BETWEEN * max(len(self.blocks) - 1, 0)

    @property
    def height(self) -> int:
        return max((len(block) for block in self.blocks), default=1) * CELL


def picture_of_arrays(tensor: SparseTensor | Decomposition, title: str) -> str:
    """Return the tensor to the left, the arrays that store it to the right. Each row has a color; slots that
    hold no element are gray."""
    arrays = [*_arrays_of(tensor)]
    parts = [text(MARGIN, MARGIN + 10, title, "title")]
    top = MARGIN + 30
    dense = tensor.toarray()
    slices = dense if dense.ndim == 3 else dense[np.newaxis]
    for number, one in enumerate(slices):
        first = top + number * (one.shape[0] * CELL + GAP)
        parts += _cells(
            MARGIN,
            first,
            [[_element(row, value) for value in line] for row, line in enumerate(one)],
        )
    names = max(len(array.name) for array in arrays if array.blocks)
    left = MARGIN + slices.shape[2] * CELL + 40 + names * LETTER
    y: float = top
    for number, array in enumerate(arrays):
        y += GAP / 2 if number else 0
        if not array.blocks:
            parts.append(text(left - 10, y + CELL / 2 + 5, array.name, "title", anchor="end"))
            y += CELL
            continue
        parts.append(text(left - 10, y + CELL / 2 + 5, array.name, anchor="end"))
        x = left
        for block in array.blocks:
            parts += _cells(x, y, block)
            x += max(map(len, block), default=0) * CELL + BETWEEN
        y += array.height
    bottom = top + len(slices) * (slices.shape[1] * CELL + GAP) - GAP
    widest = max(array.width for array in arrays)
    return drawing(left + widest + MARGIN, max(y, bottom) + MARGIN, title, parts)


def _cells(x: float, y: float, block: BoxGrid) -> list[str]:
    return [
        box(x + across * CELL, y + down * CELL, cell)
        for down, line in enumerate(block)
        for across, cell in enumerate(line)
    ]


def _element(row: int, value: float) -> BoxContent:
    return (str(int(value)), f"row{row}") if value else ("", "cell")


def _arrays_of(tensor: SparseTensor | Decomposition) -> Iterator[Drawn]:
    if isinstance(tensor, SparseTensor):
        yield from _arrays_of_storage(tensor.storage)
        return
    for part in tensor.parts:
        yield Drawn(_heading(part))
        yield from _arrays_of_storage(part.tensor.storage)


def _heading(part: Part) -> str:
    return part.name


def _arrays_of_storage(storage: Storage) -> Iterator[Drawn]:
    """Yield the arrays in the order of the parameters, the values last."""
    axes = items_by_name(storage.description.axes)
    slots = _slots(storage)
    rows = coordinates_of_slots(storage, slots, len(storage.shape) - 2)
    handles = [param.name for param in storage.description.params if param.dtype == "handle"]
    values = values_handle(storage.description)
    for handle in sorted(handles, key=lambda name: name == values):
        array = storage.arrays[handle]
        if handle == values:
            yield Drawn(
                handle, _reshape_cells(_values(storage), _dimensions(storage, _value_axes(storage)))
            )
            continue
        axis = next((axis for axis in axes.values() if _handle(indices_of(axis)) == handle), None)
        if axis is not None and _is_mask(axis):
            yield Drawn(handle, [[*_bits(storage, axis, array)]])
        elif axis is not None:
            cells = [*_entries(array, slots.slots_by_axis[axis.name], rows)]
            path = [axes[name] for name in ancestors(axes, axis.name)][::-1]
            yield Drawn(handle, _reshape_cells(cells, _dimensions(storage, [*path, axis])))
        elif any(_handle(indptr_of(axis)) == handle for axis in axes.values()):
            yield Drawn(handle, [[[(str(offset), "cell") for offset in array]]])
        else:
            yield Drawn(handle, _contents(storage, handle))


def _handle(stored: Any) -> str | None:
    return None if stored is None else stored.handle


def _is_mask(axis: Axis) -> bool:
    indices = indices_of(axis)
    return indices is not None and indices.is_mask


def _bits(storage: Storage, axis: Axis, words: Array) -> Iterator[list[BoxContent]]:
    """Yield a line for each word: the bits of the columns that there are, the lowest first."""
    slots = _slots(storage)
    rows = coordinates_of_slots(storage, slots, len(storage.shape) - 2)
    above = slots.slots_by_axis[axis.parent or ""]
    width = min(evaluate(axis.length, storage.sizes), storage.shape[-1])
    for number, word in enumerate(words):
        colors = {f"row{row}" for row in rows[above == number]}
        color = colors.pop() if colors else "pad"
        yield [("1", color) if int(word) >> place & 1 else ("0", "pad") for place in range(width)]


def _slots(storage: Storage) -> Slots:
    """Return the slots that hold elements: those inside of the tensor that no zero fills."""
    slots = no_slots()
    axes = items_by_name(storage.description.axes)
    for name in storage.description.buffer.axes:
        slots = enumerate_slots(storage, axes[name], slots)
    inside = storage.values[slots.value_indices] != 0
    for dimension, size in enumerate(storage.shape):
        coordinates = coordinates_of_slots(storage, slots, dimension)
        inside &= (coordinates >= 0) & (coordinates < size)
    return slots.select(np.flatnonzero(inside))


def _values(storage: Storage) -> list[BoxContent]:
    """Return the cells of the values; those of slots without an element are padding."""
    elements = stored_elements(storage)
    cells: list[BoxContent] = [("0", "pad")] * storage.values.size
    for row, value_index in zip(elements.coordinates[-2], elements.value_indices, strict=True):
        value = storage.values[value_index]
        if value:
            cells[value_index] = (str(int(value)), f"row{row}")
    return cells


def _entries(array: Array, elements: Array, rows: Array) -> Iterator[BoxContent]:
    """Yield the cells of stored coordinates: the color of the row, if all elements below are in one."""
    for number, entry in enumerate(array):
        element_rows = {int(row) for row in rows[elements == number]}
        kind = "cell" if element_rows else "pad"
        yield str(entry), f"row{element_rows.pop()}" if len(element_rows) == 1 else kind


def _contents(storage: Storage, handle: str) -> list[BoxGrid]:
    """Return the cells of an index array of the map. An array of rows has their colors."""
    buffer = next(array for array in storage.description.index_arrays if array.handle == handle)
    shape = [evaluate(size, storage.sizes) for size in buffer.shape]

    def kind(entry: int) -> str:
        if handle != "rows":
            return "cell"
        return f"row{entry}" if entry < storage.shape[0] else "pad"

    return _reshape_cells(
        [(str(entry), kind(int(entry))) for entry in storage.arrays[handle]], shape
    )


def _value_axes(storage: Storage) -> list[Axis]:
    axes = items_by_name(storage.description.axes)
    return [axes[name] for name in storage.description.buffer.axes]


def _dimensions(storage: Storage, axes: Sequence[Axis]) -> list[int]:
    """Return the widths of the fixed axes after the last one of variable width; -1 stands for all before."""
    widths: list[int] = []
    for axis in reversed(axes):
        if indptr_of(axis) is not None:
            return [-1, *reversed(widths)]
        widths.append(evaluate(width_of(axis), storage.sizes))
    return [*reversed(widths)]


def _reshape_cells(cells: Sequence[BoxContent], shape: Sequence[int]) -> list[BoxGrid]:
    """Return cells as lines of one block, or as blocks if they have three dimensions and more.

    >>> _reshape_cells([("1", ""), ("2", ""), ("3", ""), ("4", "")], [-1, 1, 2])
    [[[('1', ''), ('2', '')], [('3', ''), ('4', '')]]]
    """
    fixed = [size for size in shape if size not in (1, -1)]
    widths = fixed if -1 not in shape else [len(cells) // max(math.prod(fixed), 1), *fixed]
    *_, height, width = (1, 1, *(widths or [len(cells)]))
    lines = [cells[start : start + width] for start in range(0, len(cells), max(width, 1))]
    if len(widths) <= 2:
        return [lines]
    return [lines[start : start + height] for start in range(0, len(lines), height)]
