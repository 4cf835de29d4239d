"""The oracle of the coordinate stage: evaluates each statement over all points at once, with NumPy tables.

Neither the compiler nor its interpreter is used: coordinates are translated by dense tables
(`coordinate_tables`), and values are computed by NumPy (`arithmetic`). Nested iterations run one outer point
after the other; several points that store to one element do so in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gossamer_ir.nodes import (
    AttachAxis,
    Binary,
    Call,
    Cast,
    Combine,
    Compare,
    Const,
    DenseFixed,
    Expr,
    Function,
    FuseAxes,
    If,
    IfThenElse,
    Iteration,
    Let,
    Load,
    Module,
    Prefetch,
    Reinterpret,
    Select,
    SparseBuffer,
    Stmt,
    Store,
    Unary,
    Var,
)
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import walk
from tests.fuzzing.oracle import arithmetic
from tests.fuzzing.oracle.coordinate_tables import BEYOND, MISS, Forest, Storage, Undecided

Arrays: TypeAlias = Mapping[str, np.ndarray]
Scalars: TypeAlias = Mapping[str, int | float]


class Stopped(Exception):
    """The program accesses an element that does not exist: a kernel stops with the buffer's name."""


@dataclass
class Meaning:
    """The arrays after the run, or None if the program stops; and counts of events that the text of the
    program does not show, such as misses and padding."""

    arrays: dict[str, np.ndarray] | None
    events: Counter[str]


def meaning(module: Module, arrays: Arrays, scalars: Scalars) -> Meaning:
    """The meaning of a program; raises `Undecided` if it has none that can be tested."""
    (function,) = module.functions
    with np.errstate(all="ignore"):
        evaluation = _Evaluation(function, arrays, scalars)
        try:
            evaluation.body(function.body, Points(1))
        except Stopped:
            return Meaning(None, evaluation.events)
        return Meaning(evaluation.written(), evaluation.events)


@dataclass
class Points:
    """Some points of the iterations around: a column for each variable; of each axis the slots, those
    of its parent, and the coordinates (slots are None for a dense axis without its parent)."""

    count: int
    vars: dict[str, np.ndarray] = field(default_factory=dict)
    axis_of: dict[str, str] = field(default_factory=dict)
    slots: dict[str, np.ndarray | None] = field(default_factory=dict)
    parents: dict[str, np.ndarray | None] = field(default_factory=dict)
    coordinates: dict[str, np.ndarray] = field(default_factory=dict)

    def at(self, rows: np.ndarray) -> Points:
        """The given rows (positions, or a mask)."""

        def chosen(columns: Mapping[str, np.ndarray | None]) -> dict:
            return {
                key: column if column is None or np.ndim(column) == 0 else column[rows]
                for key, column in columns.items()
            }

        count = int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows)
        return Points(
            count,
            chosen(self.vars),
            dict(self.axis_of),
            chosen(self.slots),
            chosen(self.parents),
            chosen(self.coordinates),
        )


class _Evaluation:
    def __init__(self, function: Function, arrays: Arrays, scalars: Scalars) -> None:
        self.function = function
        self.events: Counter[str] = Counter()
        self.forest = Forest(function.axes, arrays=arrays, scalars=scalars)
        self.buffers = {buffer.name: buffer for buffer in function.buffers}
        self.reducers = {reducer.name: reducer for reducer in function.reducers}
        self.params = {param.name: param.dtype for param in function.params}
        self.storage: dict[str, Storage] = {}
        self.memory: dict[str, np.ndarray] = {}
        self.defined: dict[str, np.ndarray] = {}
        for buffer in function.buffers:
            assert isinstance(buffer, SparseBuffer)
            self._open(buffer, arrays)
        self.scalars = {
            name: np.asarray(value, arithmetic.held(self.params[name]))
            for name, value in scalars.items()
        }

    def _open(self, buffer: SparseBuffer, arrays: Arrays) -> None:
        storage = self.storage[buffer.name] = Storage(buffer, self.forest)
        if buffer.handle is None:
            self.memory[buffer.name] = np.zeros(storage.size, arithmetic.held(buffer.dtype))
            self.defined[buffer.name] = np.zeros(storage.size, bool)
            return
        array = arrays[buffer.handle].ravel()
        if array.size != storage.size:
            raise Undecided(f"'{buffer.handle}' has {array.size} elements, not {storage.size}")
        self.memory[buffer.name] = arithmetic.loaded(array, buffer.dtype).copy()

    def written(self) -> dict[str, np.ndarray]:
        """The arrays that the program stores to."""
        names = {node.buffer for stmt in self.function.body for node in walk(stmt)
                 if isinstance(node, Store)}  # fmt: skip
        return {
            buffer.handle: arithmetic.stored(self.memory[name], buffer.dtype)
            for name, buffer in self.buffers.items()
            if name in names and buffer.handle is not None
        }

    # --- statements

    def body(self, stmts: Iterable[Stmt], points: Points) -> None:
        points = points.at(np.arange(points.count))
        for stmt in stmts:
            if points.count:
                self.stmt(stmt, points)

    def stmt(self, stmt: Stmt, points: Points) -> None:
        match stmt:
            case Store():
                self.store(stmt, points)
            case Combine():
                self.combine(stmt, points)
            case Let(var=var, value=value):
                points.vars[var.name] = self.column(value, points)
            case If():
                is_true = self.column(stmt.condition, points).astype(bool)
                self.body(stmt.then_body, points.at(is_true))
                self.body(stmt.else_body, points.at(~is_true))
            case Iteration():
                for row in range(points.count):
                    self.iteration(stmt, points.at(np.array([row])))
            case Prefetch():
                pass
            case _:
                raise Undecided(f"a {type(stmt).__name__}")

    def store(self, stmt: Store, points: Points) -> None:
        offsets = self.stored_at(stmt, points)
        for rows in turns(offsets):
            at = points.at(rows)
            self.write(stmt.buffer, offsets[rows], self.column(stmt.value, at))

    def combine(self, stmt: Combine, points: Points) -> None:
        reducer = self.reducers[stmt.reducer]
        if len({store.indices for store in stmt.stores}) > 1:
            raise Undecided("elements at different places are combined")
        all_offsets = [self.stored_at(store, points) for store in stmt.stores]
        for rows in turns(all_offsets[0]):
            at = points.at(rows)
            for var, store, offsets in zip(reducer.lhs, stmt.stores, all_offsets, strict=True):
                at.vars[var.name] = self.read(store.buffer, offsets[rows])
            for var, store in zip(reducer.rhs, stmt.stores, strict=True):
                at.vars[var.name] = self.column(store.value, at)
            results = [self.column(result, at) for result in reducer.results]
            for store, offsets, result in zip(stmt.stores, all_offsets, results, strict=True):
                self.write(store.buffer, offsets[rows], result)

    def stored_at(self, stmt: Store, points: Points) -> np.ndarray:
        offsets = self.locate(stmt.buffer, stmt.indices, points)
        if np.any(offsets < 0):
            raise Stopped(stmt.buffer)
        return offsets

    def write(self, buffer_name: str, offsets: np.ndarray, values: np.ndarray) -> None:
        self.memory[buffer_name][offsets] = values
        if buffer_name in self.defined:
            self.defined[buffer_name][offsets] = True

    def read(self, buffer_name: str, offsets: np.ndarray) -> np.ndarray:
        if buffer_name in self.defined and not self.defined[buffer_name][offsets].all():
            raise Undecided(f"an element of '{buffer_name}' is read before anything was stored")
        return self.memory[buffer_name][offsets]

    # --- iterations

    def iteration(self, stmt: Iteration, around: Points) -> None:
        members = list(_members(stmt))
        if stmt.init:
            self.initialize(stmt, members, around)
        points = around
        for axis, var, attached in members:
            points = self.iterated(axis, var, attached, points)
        if any(isinstance(inner, Iteration) for inner in stmt.body):
            for row in range(points.count):
                self.body(stmt.body, points.at(np.array([row])))
        else:
            self.body(stmt.body, points)

    def initialize(
        self, stmt: Iteration, members: Sequence[tuple[str, str, str | None]], around: Points
    ) -> None:
        """Initializes each element once, over all values of the variables that the init uses and of those
        that select their fibers."""
        needed = {name for inner in stmt.init for name in free_vars(inner)}
        above: set[str | None] = set()
        chosen = []
        for axis, var, attached in reversed(members):
            if var in needed or axis in above:
                chosen.append((axis, var, attached))
                above.add(attached or self.forest[axis].axis.parent)
        points = around
        for axis, var, attached in reversed(chosen):
            points = self.iterated(axis, var, attached, points)
        for init_stmt in stmt.init:
            if not isinstance(init_stmt, Store):
                raise Undecided(f"a {type(init_stmt).__name__} in an init")
            if points.count:
                offsets = self.stored_at(init_stmt, points)
                _, first = np.unique(offsets, return_index=True)
                self.write(
                    init_stmt.buffer, offsets[first], self.column(init_stmt.value, points.at(first))
                )

    def iterated(
        self, axis_name: str, var_name: str, attached: str | None, points: Points
    ) -> Points:
        """The points, each repeated for the elements of its fiber of an axis."""
        slots = self.forest[axis_name]
        parents = self.parents_of(axis_name, attached, points)
        if parents is None:
            rows = np.repeat(np.arange(points.count), slots.length)
            below = points.at(rows)
            coordinates = np.tile(np.arange(slots.length), points.count)
            axis_slots: np.ndarray | None = None
        else:
            present = np.flatnonzero(parents >= 0)
            if len(present) < points.count:
                self.events["nothing attached"] += 1
            rows, axis_slots = slots.below(parents[present])
            rows = present[rows]
            is_element = slots.is_element[axis_slots]
            if not is_element.all():
                self.events["padding skipped"] += 1
            rows, axis_slots = rows[is_element], axis_slots[is_element]
            below, coordinates, parents = (
                points.at(rows),
                slots.coordinates[axis_slots],
                parents[rows],
            )
        below.vars[var_name], below.axis_of[var_name] = coordinates, axis_name
        below.slots[axis_name], below.parents[axis_name] = axis_slots, parents
        below.coordinates[axis_name] = coordinates
        return below

    def parents_of(self, axis_name: str, attached: str | None, points: Points) -> np.ndarray | None:
        """The parent's slot that selects the fiber, MISS if there is none; None for all."""
        node = self.forest[axis_name].axis
        if node.parent is None:
            return np.zeros(points.count, int)
        if attached is None:
            parents = points.slots.get(node.parent)
            if parents is None and not isinstance(node, DenseFixed):
                raise Undecided(f"'{axis_name}' without its parent")
            return parents
        parent = self.forest[node.parent]
        above: np.ndarray | None = np.zeros(points.count, int)
        if parent.axis.parent is not None and not self._is_unit(parent.axis.parent):
            above = points.slots.get(parent.axis.parent)
        if above is None:
            raise Undecided(f"'{axis_name}' is attached without the parent of its parent")
        return parent.find(above, points.coordinates[attached])

    def _is_unit(self, axis_name: str) -> bool:
        """True if the program declares that an axis has one element."""
        node = self.forest[axis_name].axis
        is_one = isinstance(node, DenseFixed) and node.length == Const("int64", "1")
        return is_one and (node.parent is None or self._is_unit(node.parent))

    # --- expressions

    def locate(self, buffer_name: str, indices: Sequence[Expr], points: Points) -> np.ndarray:
        """The offsets of elements by their coordinates, `MISS` for absent ones."""
        arrays: dict[str, np.ndarray] = {}
        for name, index in zip(self.buffers[buffer_name].axes, indices, strict=True):
            slots = self.forest[name]
            parent = slots.axis.parent
            parents = np.zeros(points.count, int) if parent is None else arrays[parent]
            arrays[name] = self._slots_at(name, index, parents, points)
        is_miss, is_beyond = np.zeros(points.count, bool), np.zeros(points.count, bool)
        for column in arrays.values():
            is_miss |= column == MISS
            is_beyond |= column == BEYOND
        if np.any(is_beyond & ~is_miss):
            if self.buffers[buffer_name].extra_storage:
                raise Undecided(f"'{buffer_name}' continues after its axes")
            raise Stopped(buffer_name)
        is_found = ~is_miss
        offsets = np.full(points.count, MISS)
        offsets[is_found] = self.storage[buffer_name].offsets(
            {name: column[is_found] for name, column in arrays.items()}
        )
        return offsets

    def _slots_at(
        self, axis_name: str, index: Expr, parents: np.ndarray, points: Points
    ) -> np.ndarray:
        """The slots of an axis; the variable that iterates this fiber gives its slot."""
        coordinates = self.column(index, points)
        is_own = isinstance(index, Var) and points.axis_of.get(index.name) == axis_name
        axis_slots, above = points.slots.get(axis_name), points.parents.get(axis_name)
        if not is_own or axis_slots is None or above is None:
            return self.forest[axis_name].find(parents, coordinates)
        same = above == parents
        if same.all():
            return axis_slots
        return np.where(same, axis_slots, self.forest[axis_name].find(parents, coordinates))

    def column(self, expr: Expr, points: Points) -> np.ndarray:
        """An expression at each point."""
        return np.broadcast_to(self.value(expr, points), (points.count,))

    def value(self, expr: Expr, points: Points) -> np.ndarray:
        match expr:
            case Const():
                return _constant(expr)
            case Var(name=name):
                return points.vars[name] if name in points.vars else self.scalars[name]
            case Load():
                return self.load(expr, points)
            case Unary(op=op):
                return arithmetic.unary(op, _dtype(expr), self.value(expr.operand, points))
            case Binary(op=op):
                left, right = self.value(expr.lhs, points), self.value(expr.rhs, points)
                return arithmetic.binary(op, _dtype(expr), left, right)
            case Compare(op=op):
                return arithmetic.COMPARED[op](
                    self.value(expr.lhs, points), self.value(expr.rhs, points)
                )
            case Cast(dtype=dtype):
                return arithmetic.converted(
                    self.value(expr.value, points), _dtype(expr.value), dtype
                )
            case Reinterpret(dtype=dtype):
                operand = self.value(expr.value, points)
                return arithmetic.reinterpreted(operand, _dtype(expr.value), dtype)
            case Call():
                args = (self.value(arg, points) for arg in expr.args)
                return arithmetic.called(expr.function, expr.dtype, *args)
            case Select():
                sides = (self.value(expr.if_true, points), self.value(expr.if_false, points))
                return np.where(self.value(expr.condition, points), *sides)
            case IfThenElse():
                return self.chosen(expr, points)
        raise Undecided(f"a {type(expr).__name__}")

    def chosen(self, expr: IfThenElse, points: Points) -> np.ndarray:
        """Evaluates each side only at the points that choose it."""
        is_true = self.column(expr.condition, points).astype(bool)
        values = np.empty(points.count, arithmetic.held(_dtype(expr)))
        for rows, side in ((is_true, expr.if_true), (~is_true, expr.if_false)):
            if rows.any():
                values[rows] = self.column(side, points.at(rows))
        return values

    def load(self, expr: Load, points: Points) -> np.ndarray:
        offsets = self.locate(expr.buffer, expr.indices, points)
        is_found = offsets >= 0
        if is_found.all():
            return self.read(expr.buffer, offsets)
        fill = self.buffers[expr.buffer].fill
        self.events["lookup misses"] += 1
        if fill is not None:
            self.events["fill values read"] += 1
        value = 0 if fill is None else _constant(fill)
        values = np.full(points.count, value, arithmetic.held(expr.dtype))
        values[is_found] = self.read(expr.buffer, offsets[is_found])
        return values


def turns(offsets: np.ndarray) -> Iterable[np.ndarray]:
    """The rows in groups without common elements; rows of one element stay in order."""
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(np.append(starts, len(ordered)))
    rank = np.empty(len(offsets), int)
    rank[order] = np.arange(len(offsets)) - np.repeat(starts, counts)
    for turn in range(int(rank.max()) + 1):
        yield np.flatnonzero(rank == turn)


def _members(stmt: Iteration) -> Iterable[tuple[str, str, str | None]]:
    """The single axes with their variables, and the axes that they are attached to."""
    members: list[tuple[str, str | None]] = []
    for item in stmt.axes:
        if isinstance(item, FuseAxes):
            members += [(axis, None) for axis in item.axes]
        elif isinstance(item, AttachAxis):
            members.append((item.axis, item.parent))
        else:
            members.append((item.axis, None))
    for (axis, attached), var in zip(members, stmt.vars, strict=True):
        yield axis, var, attached


def _constant(const: Const) -> np.ndarray:
    value = {"True": True, "False": False}.get(const.text)
    if value is None:
        value = float(const.text) if const.dtype in arithmetic.FLOATS else int(const.text)
    return np.asarray(value, arithmetic.held(const.dtype))


def _dtype(expr: Expr) -> str:
    """The dtype of an expression."""
    match expr:
        case Compare():
            return "bool"
        case Unary(operand=inner) | Binary(lhs=inner) | Select(if_true=inner):
            return _dtype(inner)
        case IfThenElse(if_true=inner):
            return _dtype(inner)
        case _:
            return expr.dtype
