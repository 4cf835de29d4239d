"""Random axes forests with their index arrays: the four kinds, in trees of any shape."""

from __future__ import annotations

from random import Random

import numpy as np

from gossamer_ir.nodes import (
    Axis,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    Expr,
    Relation,
    Var,
)  # fmt: skip
from tests.generated.elements import Forest

Rows = list[list[int]]

LENGTHS = (0, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 9)
MOST_SLOTS, MOST_FIBRES, DEEPEST = 60, 24, 4
INDEX_DTYPES = ("int32", "int32", "int64", "int64", "uint8", "uint16")


class DrawnForest:
    """Axes as they are drawn, the parameters that they need, and what these hold."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.axes: list[Axis] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.scalars: dict[str, int | float] = {}
        self.relations: list[Relation] = []
        self.slots = Forest((), arrays=self.arrays, scalars=self.scalars)
        self.rows: dict[str, Rows] = {}
        self._lengths = [rng.choice(LENGTHS) for _ in range(2)] + [rng.choice(LENGTHS[1:])]

    def draw(self) -> DrawnForest:
        """A few trees, often one deep one."""
        self.add_root()
        for _ in range(self.rng.randint(1, 5)):
            if self.rng.random() < 0.3:
                self.add_root()
            else:
                self.add_below(self._parent())
        return self

    def number(self, value: int, *, symbolic: float = 0.7) -> Expr:
        """A size, as a parameter or as a constant."""
        if self.rng.random() >= symbolic:
            return Const("int64", str(value))
        name = f"n{len(self.scalars)}"
        self.scalars[name] = value
        return Var(name, "int64")

    def length(self, axis: str) -> int:
        return self.slots[axis].length

    def ancestors(self, axis: str) -> list[str]:
        """From the root down to the axis itself."""
        parent = self.slots[axis].axis.parent
        return [*(self.ancestors(parent) if parent else ()), axis]

    def children(self, axis: str) -> list[str]:
        return [found.name for found in self.axes if found.parent == axis]

    def is_searchable(self, axis: str) -> bool:
        node = self.slots[axis].axis
        return isinstance(node, DenseFixed | DenseVaried) or (node.sorted and node.unique)

    def is_unique(self, axis: str) -> bool:
        return getattr(self.slots[axis].axis, "unique", True)

    # --- axes

    def add_root(self, length: int | None = None) -> str:
        chosen = self.rng.choice(self._lengths) if length is None else length
        return self._added(DenseFixed(self._name(), self.number(chosen)))

    def add_stored_rows(self, parent: str, length: int) -> str:
        """A sorted compressed axis."""
        rows = self._fibres(self.slots[parent].axis, length, length)
        name = self._name()
        arrays = self._indptr(name, rows, "int32"), self._indices(name, rows, "int32")
        size = self.number(length)
        return self._added(CompressedVaried(name, parent, size, self._nnz(rows), *arrays))

    def most(self, axis: str) -> int:
        """The largest number of slots that a fibre has."""
        return int(self.slots[axis].counts.max(initial=0))

    def _parent(self) -> Axis:
        usable = [
            axis
            for axis in self.axes
            if len(self.ancestors(axis.name)) < DEEPEST
            and self.slots[axis.name].size <= MOST_FIBRES
        ]
        if not usable:
            return self.slots[self.add_root(self.rng.choice((1, 2, 3)))].axis
        return usable[-1] if self.rng.random() < 0.6 else self.rng.choice(usable)

    def add_below(self, parent: Axis, length: int | None = None) -> str:
        """An axis of any kind; where its `length` is given, with more elements."""
        kinds = (self._dense, self._ragged, self._slotted, self._compressed, self._compressed)
        slots = MOST_SLOTS if length is None else 4 * MOST_SLOTS
        most = slots // max(self.slots[parent.name].size, 1)
        length = self.rng.choice(self._lengths) if length is None else length
        return self._added(self.rng.choice(kinds)(self._name(), parent, length, most))

    def _name(self) -> str:
        return "IJKLMNPQRSUVW"[len(self.axes)]

    def _added(self, axis: Axis) -> str:
        self.axes.append(axis)
        self.slots.add(axis)
        return axis.name

    def _dense(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        return DenseFixed(name, self.number(min(length, most, 4)), parent.name)

    def _ragged(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        rows = [list(range(len(row))) for row in self._fibres(parent, length, most)]
        dtype = self.rng.choice(INDEX_DTYPES)
        indptr = self._indptr(name, rows, dtype)
        return DenseVaried(name, parent.name, self.number(length), self._nnz(rows), indptr, dtype)

    def _compressed(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        rng = self.rng
        rows, length = self._rows_or_superset(name, parent, length, most)
        is_plain = self._is_kept_plain(name) or rng.random() < 0.75
        if not is_plain:
            rows = [self._tangled(row) for row in rows]
        is_padded = rng.random() < 0.2
        if is_padded:
            rows = [row + [length] * rng.choice((0, 0, 1, 2)) for row in rows]
        indptr_dtype, indices_dtype = rng.choice(INDEX_DTYPES), rng.choice(INDEX_DTYPES)
        return CompressedVaried(
            name,
            parent.name,
            self.number(length),
            self._nnz(rows),
            self._indptr(name, rows, indptr_dtype),
            self._indices(name, rows, indices_dtype),
            indptr_dtype,
            indices_dtype,
            sorted=is_plain,
            unique=is_plain,
            padded=is_padded,
        )

    def _slotted(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        """A fixed number of slots for each fibre, unused ones holding the length."""
        rng = self.rng
        rows, length = self._rows_or_superset(name, parent, length, most)
        is_plain = self._is_kept_plain(name) or rng.random() < 0.75
        if not is_plain:
            rows = [self._tangled(row) for row in rows]
        width = max((len(row) for row in rows), default=0)
        is_padded = any(len(row) < width for row in rows) or rng.random() < 0.7
        width += rng.choice((0, 0, 1, 2)) if is_padded else 0
        rows = [row + [length] * (width - len(row)) for row in rows]
        if not is_plain:
            for row in rows:
                rng.shuffle(row)
        dtype = rng.choice(INDEX_DTYPES)
        return CompressedFixed(
            name,
            parent.name,
            self.number(length),
            self.number(width),
            self._indices(name, rows, dtype),
            dtype,
            sorted=is_plain,
            unique=is_plain,
            padded=is_padded,
        )

    # --- fibres

    def _fibres(self, parent: Axis, length: int, most: int) -> Rows:
        """Coordinates for each slot of the parent: none, all, any; empty at both ends, one full row,
        one full column."""
        rng, count = self.rng, self.slots[parent.name].size
        size = rng.choice((0, 1, 2, 3, length)) if rng.random() < 0.3 else length
        rows = [
            sorted(rng.sample(range(length), rng.randint(0, min(size, length, most))))
            for _ in range(count)
        ]
        if count and rng.random() < 0.3:
            rows[0] = rows[-1] = []
        if count and rng.random() < 0.15:
            rows[rng.randrange(count)] = list(range(length))
        if length and rng.random() < 0.1:
            column = rng.randrange(length)
            rows = [sorted({*row, column}) for row in rows]
        return rows

    def _tangled(self, row: list[int]) -> list[int]:
        """In any order, sometimes with one coordinate twice."""
        found = row + ([self.rng.choice(row)] if row and self.rng.random() < 0.4 else [])
        self.rng.shuffle(found)
        return found

    def _rows_or_superset(
        self, name: str, parent: Axis, length: int, most: int
    ) -> tuple[Rows, int]:
        """Fibres, sometimes with all coordinates of a sibling's."""
        rows = self._fibres(parent, length, most)
        beside = [
            found for found in self.children(parent.name)
            if found in self.rows and self.is_searchable(found)
        ]  # fmt: skip
        if beside and self.rng.random() < 0.5:
            below = self.rng.choice(beside)
            length = max(length, self.length(below))
            pairs = zip(rows, self.rows[below], strict=True)
            rows = [sorted({*row, *part}) for row, part in pairs]
            self.relations.append(Relation("subset", below, name))
        self.rows[name] = rows
        return rows, length

    def _is_kept_plain(self, name: str) -> bool:
        return any(found.right == name for found in self.relations)

    def _nnz(self, rows: Rows) -> Expr | None:
        return None if self.rng.random() < 0.25 else self.number(sum(len(row) for row in rows))

    def _indptr(self, name: str, rows: Rows, dtype: str) -> str:
        handle = f"indptr_{name.lower()}"
        self.arrays[handle] = np.cumsum([0, *(len(row) for row in rows)]).astype(dtype)
        return handle

    def _indices(self, name: str, rows: Rows, dtype: str) -> str:
        handle = f"indices_{name.lower()}"
        self.arrays[handle] = np.array([at for row in rows for at in row], dtype)
        return handle
