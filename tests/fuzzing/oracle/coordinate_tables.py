"""Tables of a forest of axes: the slots of each axis, and the elements of each buffer.

The slots of an axis are numbered over all its fibers. The slot of a coordinate is read from a table of
fibers by coordinates, without a search.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from gossamer_ir.nodes import (
    Axis,
    Binary,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    Expr,
    SparseBuffer,
    Var,
)

SIZES: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
}  # fmt: skip
"""The operations that sizes may contain."""
MISS, BEYOND = -1, -2
"""MISS: the fiber has no such coordinate. BEYOND: the coordinate is outside of a dense axis of fixed
length."""


NEAR = 64
"""The maximum length of an axis for which there is a table of all coordinates."""


class Undecided(Exception):
    """The oracle does not define the meaning of the program, which is not used as a test."""


class Slots:
    """The slots of one axis: the parent's slot of each, its coordinate, and whether it is an element. Each
    slot of the parent has `counts` slots, from `firsts` on."""

    def __init__(self, axis: Axis, forest: Forest) -> None:
        self.axis = axis
        self.length = forest.number(axis.length)
        self.parents = 1 if axis.parent is None else forest[axis.parent].size
        if isinstance(axis, DenseVaried | CompressedVaried | BitmaskVaried):
            self.counts = np.diff(forest.arrays[axis.indptr].astype(np.int64))
        else:
            width = axis.width if isinstance(axis, CompressedFixed) else axis.length
            self.counts = np.full(self.parents, forest.number(width))
        self.firsts = np.cumsum(self.counts) - self.counts
        self.size = int(self.counts.sum())
        self.parent_of = np.repeat(np.arange(self.parents), self.counts)
        self.is_compressed = isinstance(axis, CompressedFixed | CompressedVaried | BitmaskVaried)
        self.coordinates = np.arange(self.size) - self.firsts[self.parent_of]
        self.is_element = np.ones(self.size, bool)
        if isinstance(axis, CompressedFixed | CompressedVaried):
            self.coordinates = forest.arrays[axis.indices].astype(np.int64).ravel()
            if axis.padded:
                self.is_element = self.coordinates < self.length
        if isinstance(axis, BitmaskVaried):
            words = forest.arrays[axis.words].ravel().tolist()
            bits = [at for word in words for at in range(64) if word >> at & 1]
            self.coordinates = np.array(bits, np.int64)

    @cached_property
    def _dense(self) -> np.ndarray:
        """The slot of each coordinate in each fiber of a dense axis."""
        table = np.full((self.parents, self.length), MISS)
        at = self.is_element
        table[self.parent_of[at], self.coordinates[at]] = np.arange(self.size)[at]
        return table

    @cached_property
    def _sparse(self) -> dict[tuple[int, int], int]:
        """The slot of each stored coordinate in each fiber."""
        at = np.flatnonzero(self.is_element)
        keys = zip(self.parent_of[at].tolist(), self.coordinates[at].tolist(), strict=True)
        return dict(zip(keys, at.tolist(), strict=True))

    def find(self, parents: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """The slots of coordinates in fibers, or `MISS` or `BEYOND`."""
        axis = self.axis
        if isinstance(axis, CompressedFixed | CompressedVaried) and not (
            axis.sorted and axis.unique
        ):
            raise Undecided(f"lookup in '{axis.name}', which is not sorted and unique")
        if np.any(parents == BEYOND) and not isinstance(axis, DenseFixed):
            raise Undecided(f"'{axis.name}' is looked up below an element beyond its axis")
        is_inside = (coordinates >= 0) & (coordinates < self.length) & (parents >= 0)
        outside = BEYOND if isinstance(axis, DenseFixed) else MISS
        positions = np.where(parents < 0, parents, outside)
        positions[is_inside] = self._present(parents[is_inside], coordinates[is_inside])
        return positions

    def _present(self, parents: np.ndarray, coordinates: np.ndarray) -> np.ndarray:
        """The slots of coordinates within the length of the axis, or `MISS`."""
        if self.length <= NEAR:
            return self._dense[parents, coordinates]
        keys = zip(parents.tolist(), coordinates.tolist(), strict=True)
        return np.array([self._sparse.get(key, MISS) for key in keys], int)

    def below(self, parents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The slots in the fibers of the given slots of the parent, and the row to which each belongs."""
        counts = self.counts[parents]
        rows = np.repeat(np.arange(len(parents)), counts)
        before = np.cumsum(counts) - counts
        return rows, np.arange(len(rows)) - before[rows] + self.firsts[parents][rows]


class Forest(dict[str, Slots]):
    """The slots of axes by name; sizes are parameters or constants."""

    def __init__(
        self,
        axes: tuple[Axis, ...],
        *,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, int | float],
    ) -> None:
        super().__init__()
        self.arrays, self._scalars = arrays, scalars
        for axis in axes:
            self.add(axis)

    def add(self, axis: Axis) -> None:
        """Adds an axis whose parent was added before."""
        self[axis.name] = Slots(axis, self)

    def number(self, size: Expr) -> int:
        match size:
            case Const(text=text):
                return int(text)
            case Var(name=name):
                return int(self._scalars[name])
            case Binary(op=op) if op in SIZES:
                return SIZES[op](self.number(size.lhs), self.number(size.rhs))
        raise Undecided(f"a size that is computed: {size}")


class Storage:
    """The order of the elements of a buffer: the nested enumeration of its axes."""

    def __init__(self, buffer: SparseBuffer, forest: Forest) -> None:
        self.buffer, self._forest = buffer, forest
        rows: dict[str, np.ndarray] = {}
        count = 1
        for name in buffer.axes:
            slots = forest[name]
            parent = slots.axis.parent
            above = np.zeros(count, int) if parent is None else rows[parent]
            at, below = slots.below(above)
            rows = {key: column[at] for key, column in rows.items()} | {name: below}
            count = len(below)
        self.elements = count
        self.size = count + buffer.extra_storage
        parents = {forest[name].axis.parent for name in buffer.axes}
        self._leaves = [name for name in buffer.axes if name not in parents]
        self._at = np.full([forest[name].size for name in self._leaves], MISS)
        self._at[tuple(rows[name] for name in self._leaves)] = np.arange(count)
        self._rows = rows

    def offsets(self, slots: Mapping[str, np.ndarray]) -> np.ndarray:
        """The offsets of elements given by a slot of each axis."""
        return self._at[tuple(slots[name] for name in self._leaves)]

    @property
    def is_element(self) -> np.ndarray:
        """True for elements that are not padding."""
        is_element = np.ones(self.elements, bool)
        for name, slots in self._rows.items():
            is_element &= self._forest[name].is_element[slots]
        return is_element
