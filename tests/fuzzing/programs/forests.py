"""Random forests of axes with their index arrays: all kinds of axes, in trees of any shape."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

import numpy as np

from gossamer_ir.nodes import (
    Axis,
    Binary,
    BinaryOp,
    BitmaskVaried,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    Expr,
    Relation,
    Var,
)
from tests.fuzzing.oracle.coordinate_tables import Forest
from tests.fuzzing.programs.generators import beside

Rows: TypeAlias = list[list[int]]

WIDEST = {"int32": 2**31 - 1, "int64": 2**36, "uint8": 2**8 - 1, "uint16": 2**16 - 1}
"""The maximum length of an axis whose coordinates are stored in a dtype."""
LENGTHS = (0, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 9)
MASKED = 0.2
"""The share of bitmasks among axes that would be compressed."""
MAX_SLOTS, MAX_FIBERS, DEEPEST = 60, 24, 4
INDEX_DTYPES = ("int32", "int32", "int64", "int64", "uint8", "uint16")


class DrawnForest:
    """The axes that were drawn, the parameters that they need, and the values of these."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._masks = beside(rng)
        self.axes: list[Axis] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.scalars: dict[str, int | float] = {}
        self.relations: list[Relation] = []
        self.is_wide = False
        self.slots = Forest((), arrays=self.arrays, scalars=self.scalars)
        self.rows: dict[str, Rows] = {}
        self._lengths = [rng.choice(LENGTHS) for _ in range(2)] + [rng.choice(LENGTHS[1:])]

    def draw(self) -> DrawnForest:
        """A few trees, often one deep tree, sometimes with the largest coordinates that the dtype can
        store."""
        self.is_wide = self.rng.random() < 0.15
        self.add_root()
        for _ in range(self.rng.randint(1, 5)):
            if self.rng.random() < 0.3:
                self.add_root()
            else:
                self.add_below(self._parent())
        return self

    def number(self, value: int, *, symbolic: float = 0.7) -> Expr:
        """A size: a parameter, a constant, or an expression of both."""
        if self.rng.random() >= symbolic:
            return Const("int64", str(value))
        return self._computed(value) if self.rng.random() < 0.08 else self._parameter(value)

    def _parameter(self, value: int) -> Expr:
        name = f"n{len(self.scalars)}"
        self.scalars[name] = value
        return Var(name, "int64")

    def _computed(self, value: int) -> Expr:
        by = self.rng.choice((1, 2, 3))
        parts: dict[BinaryOp, int] = {"sub": value + by, "floordiv": value * by + by - 1}
        parts |= {"add": value - by} if value >= by else {}
        parts |= {"mul": value // by} if value % by == 0 else {}
        op = self.rng.choice(tuple(parts))
        return Binary(op, self._parameter(parts[op]), Const("int64", str(by)))

    def length(self, axis_name: str) -> int:
        return self.slots[axis_name].length

    def ancestors(self, axis_name: str) -> list[str]:
        """The ancestors from the root down to the axis itself."""
        parent = self.slots[axis_name].axis.parent
        return [*(self.ancestors(parent) if parent else ()), axis_name]

    def children(self, axis_name: str) -> list[str]:
        return [axis.name for axis in self.axes if axis.parent == axis_name]

    def is_searchable(self, axis_name: str) -> bool:
        node = self.slots[axis_name].axis
        is_plain = isinstance(node, DenseFixed | DenseVaried | BitmaskVaried)
        return is_plain or (node.sorted and node.unique)

    def is_unique(self, axis_name: str) -> bool:
        return getattr(self.slots[axis_name].axis, "unique", True)

    # --- axes

    def add_root(self, length: int | None = None, *, symbolic: float = 0.7) -> str:
        chosen = self.rng.choice(self._lengths) if length is None else length
        return self._added(DenseFixed(self._name(), self.number(chosen, symbolic=symbolic)))

    def add_root_like(self, axis_name: str) -> str:
        """A dense axis whose length is the same expression as that of another axis."""
        return self._added(DenseFixed(self._name(), self.slots[axis_name].axis.length))

    def add_same_rows(self, parent: str, length: int) -> str:
        """A dense axis with the same elements below each element of its parent."""
        return self._added(DenseFixed(self._name(), self.number(length), parent=parent))

    def add_stored_rows(self, parent: str, length: int, *, symbolic: float = 0.7) -> str:
        """A sorted compressed axis."""
        rows = self._fibers(self.slots[parent].axis, length, length)
        name = self._name()
        arrays = self._indptr(name, rows, "int32"), self._indices(name, rows, "int32")
        size = self.number(length, symbolic=symbolic)
        return self._added(CompressedVaried(name, parent, size, self._nnz(rows), *arrays))

    def most(self, axis_name: str) -> int:
        """The maximum number of slots of a fiber."""
        return int(self.slots[axis_name].counts.max(initial=0))

    def _parent(self) -> Axis:
        usable = [
            axis
            for axis in self.axes
            if len(self.ancestors(axis.name)) < DEEPEST and self.slots[axis.name].size <= MAX_FIBERS
        ]
        if not usable:
            return self.slots[self.add_root(self.rng.choice((1, 2, 3)))].axis
        return usable[-1] if self.rng.random() < 0.6 else self.rng.choice(usable)

    def add_below(self, parent: Axis, length: int | None = None) -> str:
        """An axis of any kind; if `length` is given, with more elements."""
        kinds = (self._dense, self._ragged, self._slotted, self._compressed, self._compressed)
        slots = MAX_SLOTS if length is None else 4 * MAX_SLOTS
        most = slots // max(self.slots[parent.name].size, 1)
        length = self.rng.choice(self._lengths) if length is None else length
        draw = self.rng.choice(kinds)
        if draw == self._compressed and self._masks.random() < MASKED:
            draw = self._masked
        return self._added(draw(self._name(), parent, length, most))

    def _name(self) -> str:
        return "IJKLMNPQRSUVW"[len(self.axes)]

    def _added(self, axis: Axis) -> str:
        self.axes.append(axis)
        self.slots.add(axis)
        return axis.name

    def _dense(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        return DenseFixed(name, self.number(min(length, most, 4)), parent.name)

    def _ragged(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        rows = [list(range(len(row))) for row in self._fibers(parent, length, most)]
        dtype = self._storage(_total(rows))
        indptr = self._indptr(name, rows, dtype)
        return DenseVaried(name, parent.name, self.number(length), self._nnz(rows), indptr, dtype)

    def _compressed(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        rng = self.rng
        rows, length = self._rows(name, parent, length, most)
        is_plain = self._is_kept_plain(name) or rng.random() < 0.75
        if not is_plain:
            rows = [self._tangled(row) for row in rows]
        is_padded = rng.random() < 0.2
        if is_padded:
            rows = [row + [length] * rng.choice((0, 0, 1, 2)) for row in rows]
        indptr_dtype, indices_dtype = self._storage(_total(rows)), self._storage(length)
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
        """A fixed number of slots for each fiber; unused slots hold the length."""
        rng = self.rng
        rows, length = self._rows(name, parent, length, most)
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
        dtype = self._storage(length)
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

    def _masked(self, name: str, parent: Axis, length: int, most: int) -> Axis:
        """A word of bits for each fiber, sometimes with the highest bit."""
        rng = self.rng
        rows = self._fibers(parent, length, most)
        bits = rng.choice([bits for bits in (8, 16, 32, 64) if bits >= length])
        if length and rng.random() < 0.2:
            rows, length = [[at + bits - length for at in row] for row in rows], bits
        dtype = self._storage(_total(rows))
        words = [sum(1 << at for at in row) for row in rows]
        handle = f"words_{name.lower()}"
        self.arrays[handle] = np.array(words, f"uint{bits}")
        return BitmaskVaried(
            name,
            parent.name,
            self.number(length),
            self._nnz(rows),
            self._indptr(name, rows, dtype),
            handle,
            dtype,
            f"uint{bits}",
        )

    # --- fibers

    def _fibers(self, parent: Axis, length: int, most: int) -> Rows:
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
        """The coordinates in random order, sometimes with a duplicate."""
        columns = row + ([self.rng.choice(row)] if row and self.rng.random() < 0.4 else [])
        self.rng.shuffle(columns)
        return columns

    def _rows(self, name: str, parent: Axis, length: int, most: int) -> tuple[Rows, int]:
        """Fibers, sometimes related to those of a sibling axis, or with large coordinates."""
        rows = self._fibers(parent, length, most)
        beside = [
            row
            for row in self.rows
            if self.is_searchable(row) and self._is_beside(self.slots[row].axis.parent, parent)
        ]
        if beside and self.rng.random() < 0.6:
            rows, length = self._related(name, self.rng.choice(beside), rows, length)
        elif self.is_wide and self.rng.random() < 0.6:
            rows, length = self._widened(rows, length)
        self.rows[name] = rows
        return rows, length

    def _is_beside(self, above: str | None, parent: Axis) -> bool:
        """True if two axes have one fiber for each coordinate of their parents, and the same ones."""
        if above is None or above == parent.name:
            return above is not None
        roots = self.slots[above].axis, parent
        is_like = self.length(above) == self.length(parent.name)
        return is_like and all(root.parent is None for root in roots)

    def _related(self, name: str, other: str, rows: Rows, length: int) -> tuple[Rows, int]:
        """Fibers with all coordinates of another axis, with some of them, or with others."""
        pairs = list(zip(rows, self.rows[other], strict=True))
        kind = self.rng.choice(("superset", "subset", "disjoint"))
        if kind == "disjoint":
            sides = self.rng.sample((name, other), 2)
            self.relations.append(Relation("disjoint", *sides))
            return [sorted({*row} - {*part}) for row, part in pairs], length
        below, above = (other, name) if kind == "superset" else (name, other)
        subset, covers = Relation("subset", below, above), Relation("covers", above, below)
        self.relations.append(self.rng.choice((subset, covers)))
        if kind == "superset":
            rows = [sorted({*row, *part}) for row, part in pairs]
        else:
            rows = [[at for at in part if self.rng.random() < 0.6] for _, part in pairs]
        return rows, max(length, self.length(other))

    def _widened(self, rows: Rows, length: int) -> tuple[Rows, int]:
        """The same fibers, with coordinates as large as some storage type allows."""
        factor = WIDEST[self.rng.choice(INDEX_DTYPES)] // max(length, 1)
        return [[at * factor + factor - 1 for at in row] for row in rows], length * factor

    def supersets(self) -> list[tuple[str, str]]:
        """Pairs of axes; the second contains all elements of the first."""
        return [
            (relation.left, relation.right)
            if relation.kind == "subset"
            else (relation.right, relation.left)
            for relation in self.relations
            if relation.kind != "disjoint"
        ]

    def _is_kept_plain(self, name: str) -> bool:
        return any(name in (relation.left, relation.right) for relation in self.relations)

    def _storage(self, most: int) -> str:
        """The dtypes that can store numbers up to the largest one."""
        return self.rng.choice([dtype for dtype in INDEX_DTYPES if WIDEST[dtype] >= most])

    def _nnz(self, rows: Rows) -> Expr | None:
        return None if self.rng.random() < 0.25 else self.number(_total(rows))

    def _indptr(self, name: str, rows: Rows, dtype: str) -> str:
        handle = f"indptr_{name.lower()}"
        self.arrays[handle] = np.cumsum([0, *(len(row) for row in rows)]).astype(dtype)
        return handle

    def _indices(self, name: str, rows: Rows, dtype: str) -> str:
        handle = f"indices_{name.lower()}"
        self.arrays[handle] = np.array([at for row in rows for at in row], dtype)
        return handle


def _total(rows: Rows) -> int:
    return sum(len(row) for row in rows)
