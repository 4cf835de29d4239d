"""A buffer of a running program: an array, and the map from the buffer's indices to the array's."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, TypeAlias

import numpy as np

from gossamer_ir.core.encodings import encoding_of
from gossamer_ir.interpret.interpreter_errors import GuardFailed, out_of_bounds_error
from gossamer_support.arrays import Array

ViewIndices: TypeAlias = tuple[Any, ...]


class View:
    """The array of a buffer.

    `locate` maps indices of the buffer to indices of the array; it raises if they are out of bounds, and
    returns None if there is no element, for which reads give `fill`. Without it the indices are those of
    the array. Sparse buffers use the `locate` of their layout (see `layout`).
    """

    __slots__ = ("_checked_indices", "array", "encoding", "fill", "locate", "name")

    def __init__(
        self,
        name: str,
        array: Array,
        *,
        dtype: str,
        locate: Callable[[ViewIndices], ViewIndices | None] | None = None,
        fill: Any = None,
    ) -> None:
        self.name = name
        self.array = array
        self.fill = fill
        self._checked_indices = _bounds_checked(name, array.shape)
        self.locate = locate if locate is not None else self._checked_indices
        self.encoding = encoding_of(dtype)

    def read(self, indices: ViewIndices) -> Any:
        """Return the element at indices."""
        where = self.locate(indices)
        # `element` inlined: most of the time of a run is spent here and in `write`.
        if where is None or self.encoding is not None:
            return self.element(where)
        return self.array[where]

    def element(self, where: ViewIndices | None) -> Any:
        """Return the element at indices of the array; None stands for an absent one."""
        return self.fill if where is None else self._decode(self.array[where])

    def write(self, indices: ViewIndices, value: Any) -> None:
        """Set the element at indices; raise `GuardFailed` if there is none."""
        where = self.locate(indices)
        if where is None or self.encoding is not None:
            self.set_element(where, value)
        else:
            self.array[where] = value

    def set_element(self, where: ViewIndices | None, value: Any) -> None:
        """Set the element at indices of the array; raise `GuardFailed` for None."""
        if where is None:
            raise GuardFailed(self.name, ": a store to an absent element")
        self.array[where] = self._encode(value)

    def gather(self, indices: ViewIndices, mask: Array | None, passthrough: Any) -> Any:
        """Return the elements at vector indices; lanes where `mask` is false give those of `passthrough`."""
        if mask is None:
            return self._decode(self.array[self._lanes(indices, mask)])
        result = passthrough.copy()
        if mask.any():
            result[mask] = self._decode(self.array[self._lanes(indices, mask)])
        return result

    def scatter(self, indices: ViewIndices, value: Any, mask: Array | None) -> None:
        """Set the elements at vector indices where `mask` is true, in the order of the lanes."""
        if mask is None or mask.any():
            values = self._encode(value if mask is None else value[mask])
            self.array[self._lanes(indices, mask)] = values

    def window(self, prefix: ViewIndices, begin: int, end: int) -> Array:
        """Return the elements at the last indices begin, ..., end - 1, as int64."""
        if begin >= end:
            return np.empty(0, np.int64)
        first, last = self.locate((*prefix, begin)), self.locate((*prefix, end - 1))
        if first is None or last is None:
            raise GuardFailed(self.name, ": a search beyond a fiber")
        row = self.array[first[:-1]]
        return row[first[-1] : first[-1] + (end - begin)].astype(np.int64)

    def _decode(self, stored: Any) -> Any:
        return stored if self.encoding is None else self.encoding.decode(stored)

    def _encode(self, values: Any) -> Any:
        return values if self.encoding is None else self.encoding.encode(values)

    def _lanes(self, indices: ViewIndices, mask: Array | None) -> ViewIndices:
        """Return the indices in the lanes that `mask` selects, of which there are some, after checking that
        they are in bounds."""
        lanes = indices
        if mask is not None:
            lanes = tuple(lane[mask] if isinstance(lane, np.ndarray) else lane for lane in indices)
        if not all(map(_are_inside, lanes, self.array.shape)):
            for end in (np.min, np.max):
                self._checked_indices(tuple(end(lane) for lane in lanes))
        return lanes


def _are_inside(lanes: Any, size: int) -> bool:
    # Vectors have few lanes, of which Python finds the least and the greatest in less time than NumPy.
    positions = lanes.tolist() if isinstance(lanes, np.ndarray) else (lanes,)
    return bool(min(positions) >= 0 and max(positions) < size)


def _bounds_checked(name: str, shape: tuple[int, ...]) -> Callable[[ViewIndices], ViewIndices]:
    """Return the function that checks that indices of an array are in bounds, and returns them as integers of
    Python: these are compared in a tenth of the time of NumPy's."""

    def bounded_indices(indices: ViewIndices) -> ViewIndices:
        where = tuple(map(index, indices))
        for position, size in zip(where, shape, strict=True):
            if not 0 <= position < size:
                raise out_of_bounds_error(name, indices, shape)
        return where

    # Nearly all arrays have one or two dimensions, for which a loop takes most of the time.
    if len(shape) == 1:
        (length,) = shape

        def bounded_vector_index(indices: ViewIndices) -> ViewIndices:
            (position,) = indices
            position = index(position)
            return (position,) if 0 <= position < length else bounded_indices(indices)

        return bounded_vector_index
    if len(shape) == 2:
        height, width = shape

        def bounded_matrix_index(indices: ViewIndices) -> ViewIndices:
            row, column = indices
            row, column = index(row), index(column)
            if 0 <= row < height and 0 <= column < width:
                return row, column
            return bounded_indices(indices)

        return bounded_matrix_index
    return bounded_indices
