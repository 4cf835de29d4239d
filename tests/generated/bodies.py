"""Random iterations over a forest: what they visit, read and store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from random import Random

import numpy as np

from gossamer_ir.constants import constant
from gossamer_ir.nodes import (
    AttachAxis,
    Binary,
    BinaryOp,
    Cast,
    Combine,
    DenseFixed,
    Expr,
    FuseAxes,
    If,
    Iteration,
    IterationAxis,
    Let,
    Load,
    OverAxis,
    Prefetch,
    Reducer,
    Select,
    SparseBuffer,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.reducers import identity
from gossamer_ir.walk import free_vars
from tests.generated.drawn_reducers import REDUCERS, largest_and_where
from tests.generated.elements import Storage
from tests.generated.forests import DrawnForest
from tests.generated.numbers import FLOATS, INTEGERS, SIGNIFICANT, held, stored
from tests.generated.terms import MOST, Term, Terms, largest, term

DTYPES = (
    *("float32",) * 4, *("float64",) * 3, "float16", "bfloat16", "int8", "int16", "int32", "int32",
    "int64", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
MOST_POINTS, MOST_ELEMENTS = 120, 400
FLOAT_OPS: tuple[BinaryOp, ...] = ("add", "add", "add", "sub", "mul", "min", "max")
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


@dataclass(frozen=True)
class Bound:
    """A variable of an iteration; `is_own` where it stands for the slot of its axis in a fibre that
    the variable of the axis' parent selects."""

    var: str
    axis: str
    is_own: bool


@dataclass
class Place:
    """An element to store to: its buffer, its indices, and whether no two points share it."""

    buffer: SparseBuffer
    indices: tuple[Expr, ...]


@dataclass
class Bodies:
    """Draws statements one after the other; `careless` ones may access what does not exist."""

    rng: Random
    forest: DrawnForest
    is_special: bool
    is_careless: bool
    dtypes: tuple[str, ...]
    buffers: list[SparseBuffer] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, tuple[str, int | float]] = field(default_factory=dict)
    reducers: list[Reducer] = field(default_factory=list)
    tolerances: dict[str, float] = field(default_factory=dict)
    contents: dict[str, Term] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    own_elements: list[Term] = field(default_factory=list)
    pending: list[Term] = field(default_factory=list)
    scope: list[Bound] = field(default_factory=list)
    lets: list[Term] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.terms = Terms(self.rng, leaf=self.leaf, coordinate=self.coordinate, dtypes=self.dtypes)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- iterations

    def iteration(self) -> Iteration:
        """One that stands by itself, perhaps with others inside."""
        if self.chance(0.25):
            return self.nested()
        return self._iteration(self._members(()), depth=0)

    def nested(self) -> Iteration:
        outer = self._members((), most=2)
        name = self.fresh("step")
        before = len(self.scope)
        vars_ = self._enter(outer)
        body: list[Stmt] = []
        blocked = set(self.blocked)
        for _ in range(self.rng.choice((1, 2, 2, 3))):
            inner = self._members(tuple(found.axis for found in self.scope), most=2)
            if inner and self.chance(0.8):
                body.append(self._iteration(inner, depth=1))
            else:
                body += self.statements(outer)[1]
        del self.scope[before:]
        self._leave(blocked)
        kinds = "".join(self.rng.choice("SSR") for _ in vars_)
        return Iteration(name, self._items(outer), kinds, vars_, tuple(body))

    def _iteration(self, members: list[tuple[str, str | None]], *, depth: int) -> Iteration:
        name, before = self.fresh("step"), len(self.scope)
        vars_ = self._enter(members)
        blocked = set(self.blocked)
        init, body = self.statements(members)
        del self.scope[before:]
        if depth:
            self.own_elements += self.pending
            self.pending = []
        else:
            self._leave(blocked)
        in_init = {found for stmt in init for found in free_vars(stmt)}
        kinds = "".join("S" if var in in_init or self.chance(0.3) else "R" for var in vars_)
        return Iteration(name, self._items(members), kinds, vars_, tuple(body), tuple(init))

    def _leave(self, blocked: set[str]) -> None:
        """The end of an iteration that none stands around."""
        self.blocked, self.read = blocked, set()
        self.own_elements, self.pending = [], []

    def _enter(self, members: list[tuple[str, str | None]]) -> tuple[str, ...]:
        found = []
        for axis, attached in members:
            parent = self.forest.slots[axis].axis.parent
            is_own = attached is None and (
                parent is None or any(bound.axis == parent for bound in self.scope)
            )
            bound = Bound(self.fresh("v"), axis, is_own)
            self.scope.append(bound)
            found.append(bound.var)
        return tuple(found)

    def _members(self, around: tuple[str, ...], *, most: int = 4) -> list[tuple[str, str | None]]:
        """Axes, and what each is attached to, so that there are not too many points."""
        forest, rng = self.forest, self.rng
        found: list[tuple[str, str | None]] = []
        points = float(np.prod([max(self.forest.most(axis), 1) for axis in around]))
        names = [axis.name for axis in forest.axes]
        for _ in range(rng.randint(1, 3)):
            choice = rng.choice(names[-2:] if self.chance(0.4) else names)
            wanted = [axis for axis in forest.ancestors(choice) if axis not in around]
            for axis in wanted:
                here = [*around, *(name for name, _ in found)]
                if axis in here or len(found) >= most or not self._is_startable(axis, here):
                    continue
                if points * self.forest.most(axis) > MOST_POINTS:
                    break
                points *= max(self.forest.most(axis), 1)
                found.append((axis, None))
        found = self._mixed(found)
        here = [*around, *(name for name, _ in found)]
        if self.chance(0.25) and len(found) < most:
            found += self._free(here, points)
            here = [*around, *(name for name, _ in found)]
        if self.chance(0.3) and here:
            found += self._attached(here, points)
        return found

    def most_points(self) -> float:
        """How many points the iterations around have at most."""
        return float(np.prod([max(self.forest.most(bound.axis), 1) for bound in self.scope]))

    def _is_startable(self, axis: str, here: Sequence[str]) -> bool:
        parent = self.forest.slots[axis].axis.parent
        return parent is None or parent in here

    def _free(self, here: list[str], points: float) -> list[tuple[str, str | None]]:
        """A dense axis without its parent."""
        found = [
            axis.name for axis in self.forest.axes
            if isinstance(axis, DenseFixed) and axis.parent is not None and axis.name not in here
            and axis.parent not in here and points * self.forest.most(axis.name) <= MOST_POINTS
        ]  # fmt: skip
        return [(self.rng.choice(found), None)] if found else []

    def _attached(self, here: list[str], points: float) -> list[tuple[str, str | None]]:
        found = []
        for axis in self.forest.axes:
            if axis.parent is None or axis.name in here or axis.parent in here:
                continue
            above = self.forest.slots[axis.parent].axis.parent
            if (above is None or above in here) and self.forest.is_searchable(axis.parent):
                found.append(axis.name)
        found = [axis for axis in found if points * self.forest.most(axis) <= MOST_POINTS]
        return [(self.rng.choice(found), self.rng.choice(here))] if found else []

    def _mixed(self, found: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """In any order that has parents before their children."""
        if self.chance(0.6):
            return found
        left, done = list(found), []
        names = {axis for axis, _ in found}
        while left:
            ready = [
                entry for entry in left
                if (parent := self.forest.slots[entry[0]].axis.parent) not in names
                or parent in [axis for axis, _ in done]
            ]  # fmt: skip
            done.append(self.rng.choice(ready))
            left.remove(done[-1])
        return done

    def _items(self, members: list[tuple[str, str | None]]) -> tuple[IterationAxis, ...]:
        """The axes, some of them fused."""
        items: list[IterationAxis] = []
        at = 0
        while at < len(members):
            end = at + 1
            if self.chance(0.4):
                while end < len(members) and self._is_child(members[end], members[end - 1]):
                    end += 1
            names = [axis for axis, _ in members[at:end]]
            axis, attached = members[at]
            if len(names) > 1:
                items.append(FuseAxes(tuple(names)))
            else:
                items.append(AttachAxis(axis, attached) if attached else OverAxis(axis))
            at = end
        return tuple(items)

    def _is_child(self, below: tuple[str, str | None], above: tuple[str, str | None]) -> bool:
        is_plain = below[1] is None and above[1] is None
        return is_plain and self.forest.slots[below[0]].axis.parent == above[0]

    # --- what can be read

    def coordinate(self) -> Term:
        """A variable, or a little arithmetic with it."""
        if not self.scope:
            return self.terms.number(self.rng.randint(0, 3), "int64")
        bound = self.rng.choice(self.scope)
        var, most = Var(bound.var, "int64"), float(max(self.forest.length(bound.axis), 1))
        kind = self.rng.random()
        if kind < 0.7:
            return Term(var, "int64", most)
        number = self.rng.choice((1, 2, 3))
        if kind < 0.8:
            return Term(Binary("add", var, constant(number, "int64")), "int64", most + 3)
        if kind < 0.9:
            return Term(Binary("floordiv", var, constant(2, "int64")), "int64", most)
        return Term(Binary("mul", var, constant(number, "int64")), "int64", most * 3)

    def leaf(self, dtype: str) -> Term:
        """A constant, a let, a parameter, an element."""
        rng = self.rng
        lets = [found for found in self.lets if found.dtype == dtype]
        if lets and self.chance(0.5):
            return rng.choice(lets)
        kind = rng.random()
        if kind < 0.12:
            return self._constant(dtype)
        if kind < 0.2 and dtype in ("float32", "float64", "int32", "int64"):
            return self._scalar(dtype)
        if kind < 0.27 and dtype != "bool" and self.scope:
            return self.terms.cast(self.coordinate(), dtype)
        known = {bound.var for bound in self.scope} | set(self.scalars) | set(self.forest.scalars)
        own = [
            found for found in self.own_elements
            if found.dtype == dtype and free_vars(found.expr) <= known
        ]  # fmt: skip
        if own and self.chance(0.5):
            return rng.choice(own)
        return self.load(dtype) or self._constant(dtype)

    def _constant(self, dtype: str) -> Term:
        if dtype == "bool":
            return Term(constant(self.chance(0.5), dtype), dtype, 1)
        low = 0 if dtype.startswith("u") else -2
        return self.terms.number(self.rng.randint(low, 3), dtype)

    def _scalar(self, dtype: str) -> Term:
        name = f"scale_{dtype}"
        value = self.rng.choice((1, 2, 3))
        self.scalars.setdefault(name, (dtype, float(value) if dtype in FLOATS else value))
        return Term(Var(name, dtype), dtype, 3)

    def load(self, dtype: str) -> Term | None:
        """An element of a buffer that is there, or of a new one."""
        usable = [
            found for found in self.buffers
            if found.dtype == dtype and found.name not in self.blocked
        ]  # fmt: skip
        self.rng.shuffle(usable)
        if len(usable) > 2 or self.chance(0.55):
            for buffer in usable:
                indices = self.indices(buffer.axes)
                if indices is not None:
                    content = self.contents[buffer.name]
                    self.read.add(buffer.name)
                    return Term(Load(buffer.name, indices, dtype), dtype, content.bound,
                                content.fraction, content.error)  # fmt: skip
        axes = self.axes_to_read()
        indices = self.indices(axes)
        if indices is None:
            return None
        buffer = self.buffer(axes, dtype, is_read=True)
        content = self.contents[buffer.name]
        self.read.add(buffer.name)
        return Term(Load(buffer.name, indices, dtype), dtype, content.bound)

    def axes_to_read(self) -> tuple[str, ...]:
        """The chain of one axis, perhaps with another beside it."""
        forest, rng = self.forest, self.rng
        own = [found.axis for found in self.scope]
        pairs = self._sibling_pairs()
        if pairs and self.chance(0.15):
            return rng.choice(pairs)
        first = rng.choice(own) if own and self.chance(0.7) else rng.choice(forest.axes).name
        chosen = forest.ancestors(first)
        if self.chance(0.3):
            other = rng.choice(own) if own and self.chance(0.6) else rng.choice(forest.axes).name
            added = [axis for axis in forest.ancestors(other) if axis not in chosen]
            if added and self._is_storable([*chosen, *added]):
                chosen = [*chosen, *added] if self.chance(0.6) else self._merged(chosen, added)
        return tuple(chosen)

    def _merged(self, chosen: list[str], added: list[str]) -> list[str]:
        """Any order that has parents before their children."""
        pairs = [(axis, None) for axis in (*chosen, *added)]
        return [axis for axis, _ in self._mixed(pairs)]

    def _is_storable(self, axes: Sequence[str]) -> bool:
        """Whether a buffer may have these axes: where two vary below one parent, it needs offsets,
        which there are for two children of a root axis and nothing else."""
        return not self._has_siblings(axes) or self._sums(axes) is not None

    def _has_siblings(self, axes: Sequence[str]) -> bool:
        above = {axis: set(self.forest.ancestors(axis)) for axis in axes if self._is_varied(axis)}
        return any(
            one not in above[two] and two not in above[one] and above[one] & above[two]
            for one in above
            for two in above
        )

    def _sibling_pairs(self) -> list[tuple[str, ...]]:
        """Root axes with two children that vary."""
        found = [
            (root.name, *pair)
            for root in self.forest.axes
            if root.parent is None
            for pair in permutations(filter(self._is_varied, self.forest.children(root.name)), 2)
        ]
        return [axes for axes in found if self._sums(axes) is not None]

    def _sums(self, axes: Sequence[str]) -> np.ndarray | None:
        """The prefix sums of the products of the lengths of two siblings."""
        root = min(axes, key=lambda axis: len(self.forest.ancestors(axis)))
        below = [axis for axis in axes if axis != root]
        nodes = [self.forest.slots[axis].axis for axis in below]
        if len(below) != 2 or any(node.parent != root for node in nodes):
            return None
        one, two = (self.forest.slots[axis].counts for axis in below)
        sums = np.cumsum([0, *(one * two)])
        dtype = nodes[0].indptr_dtype
        return sums.astype(dtype) if sums[-1] <= np.iinfo(dtype).max else None

    def _offsets(self, axes: Sequence[str]) -> str | None:
        """The parameter with the offsets that a buffer needs."""
        if not self._has_siblings(axes):
            return None
        name = f"offsets_{''.join(axes).lower()}"
        self.arrays[name] = self._sums(axes)
        return name

    def _is_varied(self, axis: str) -> bool:
        return hasattr(self.forest.slots[axis].axis, "indptr")

    # --- indices

    def indices(self, axes: Sequence[str], *, exact: bool = False) -> tuple[Expr, ...] | None:
        """Coordinates along axes; `exact`: of an element that exists at every point."""
        found: list[Expr] = []
        own: set[str] = set()
        for axis in axes:
            parent = self.forest.slots[axis].axis.parent
            is_below_own = parent is None or parent in own
            index, is_own = self._index(axis, is_below_own=is_below_own, exact=exact)
            if index is None:
                return None
            found.append(index)
            if is_own:
                own.add(axis)
        return tuple(found)

    def _index(self, axis: str, *, is_below_own: bool, exact: bool) -> tuple[Expr | None, bool]:
        mine = [bound for bound in self.scope if bound.axis == axis and bound.is_own]
        node = self.forest.slots[axis].axis
        if mine and is_below_own and (exact or self.chance(0.75)):
            return Var(mine[0].var, "int64"), True
        if not self.forest.is_searchable(axis):
            is_usable = bool(mine) and is_below_own
            return (Var(mine[0].var, "int64") if is_usable else None), is_usable
        if exact and not isinstance(node, DenseFixed):
            return None, False
        if not isinstance(node, DenseFixed):
            return self._any_coordinate(), False
        return self._inside(axis, node), False

    def _any_coordinate(self) -> Expr:
        """A coordinate that may be absent."""
        if self.chance(0.1):
            return constant(self.rng.randint(-1, 4), "int64")
        if self.chance(0.12):
            shift = constant(self.rng.choice((-1, 1, 2)), "int64")
            return Binary("add", self.coordinate().expr, shift)
        gathered = self._gathered(self.rng.choice(self.forest.axes).name)
        if gathered is not None and self.chance(0.15):
            return gathered
        return self.coordinate().expr

    def _inside(self, axis: str, node: DenseFixed) -> Expr | None:
        """A coordinate of a dense axis: by a variable that is no larger, a remainder, an index array,
        a number."""
        length = self.forest.length(axis)
        if self.is_careless and self.chance(0.5):
            return self._any_coordinate()
        if not length:
            return None
        fitting = [
            bound for bound in self.scope if 0 < self.forest.length(bound.axis) <= length
        ]  # fmt: skip
        if fitting and self.chance(0.75):
            return Var(self.rng.choice(fitting).var, "int64")
        gathered = self._gathered(axis)
        if gathered is not None and self.chance(0.4):
            return gathered
        if self.scope and self.chance(0.7):
            return Binary("floormod", self.coordinate().expr, node.length)
        return constant(self.rng.randrange(length), "int64")

    def _gathered(self, axis: str) -> Expr | None:
        """A coordinate that is read from an array over a dense root axis."""
        length = self.forest.length(axis)
        roots = [
            bound for bound in self.scope
            if isinstance(self.forest.slots[bound.axis].axis, DenseFixed)
            and self.forest.slots[bound.axis].axis.parent is None
        ]  # fmt: skip
        if not roots or not length:
            return None
        bound = self.rng.choice(roots)
        name = f"AT_{axis}_{bound.axis}"
        if all(found.name != name for found in self.buffers):
            count = self.forest.length(bound.axis)
            dtype = self.rng.choice(("int32", "int64"))
            drawn = [self.rng.randrange(length) for _ in range(count)]
            if count <= length:
                drawn = self.rng.sample(range(length), count)
            self.arrays[name.lower()] = np.array(drawn, dtype)
            self.buffers.append(SparseBuffer(name, (bound.axis,), dtype, name.lower()))
            self.contents[name] = Term(constant(0, dtype), dtype, length)
        buffer = next(found for found in self.buffers if found.name == name)
        read: Expr = Load(name, (Var(bound.var, "int64"),), buffer.dtype)
        return read if buffer.dtype == "int64" else Cast("int64", read)

    # --- buffers

    def buffer(self, axes: tuple[str, ...], dtype: str, *, is_read: bool) -> SparseBuffer:
        """A new buffer of parameters, or one that the program allocates."""
        name = self.fresh("B")
        fill = None
        if self.chance(0.3):
            numbers = (7, 1, *((float("nan"), float("-inf")) if dtype in FLOATS and self.is_special
                               else ()))  # fmt: skip
            fill = constant(self.rng.choice(numbers), dtype)
        extra = self.rng.choice((1, 3)) if self.chance(0.02) else 0
        scope, offsets = "global", self._offsets(axes)
        if not is_read and self.chance(0.3) and not self.is_careless:
            scope = self.rng.choice(("global", "local"))
            found = SparseBuffer(name, axes, dtype, None, scope, fill, 0, offsets)
        else:
            found = SparseBuffer(name, axes, dtype, name.lower(), scope, fill, extra, offsets)
            values = self._values(Storage(found, self.forest.slots).size, dtype)
            self.arrays[name.lower()] = stored(values, dtype)
        bound = largest(dtype) if dtype in INTEGERS and self.chance(0.1) else 4.0
        if dtype in INTEGERS and found.handle and bound > 4:
            self.arrays[name.lower()] = self._any_integers(len(values), dtype)
        self.contents[name] = Term(constant(0, dtype), dtype, max(bound, 7.0 if fill else 4.0))
        self.buffers.append(found)
        return found

    def _values(self, count: int, dtype: str) -> np.ndarray:
        if dtype == "bool":
            return np.array([self.chance(0.5) for _ in range(count)], bool)
        low = 0 if dtype.startswith("u") else -4
        found = np.array([self.rng.randint(low, 4) for _ in range(count)], held(dtype))
        if self.is_special and dtype in FLOATS:
            for _ in range(self.rng.randint(0, 3) if count else 0):
                found[self.rng.randrange(count)] = self.rng.choice(SPECIAL)
        return found

    def _any_integers(self, count: int, dtype: str) -> np.ndarray:
        limits = np.iinfo(dtype)
        drawn = [self.rng.randint(int(limits.min), int(limits.max)) for _ in range(count)]
        return np.array(drawn, dtype)

    # --- statements

    def statements(self, members: list[tuple[str, str | None]]) -> tuple[list[Stmt], list[Stmt]]:
        """An init and a body."""
        self.lets = []
        init: list[Stmt] = []
        body: list[Stmt] = []
        if self.chance(0.04):
            body += self._prefetch()
        if self.chance(0.2):
            dtype = self.rng.choice(self.dtypes)
            value = self.terms.value(dtype, 2)
            name = self.fresh("t")
            body.append(Let(Var(name, dtype), value.expr))
            self.lets = [Term(Var(name, dtype), dtype, value.bound, value.fraction, value.error)]
        kinds = [self.assign, self.accumulate, self.accumulate, self.combine]
        steps = self.rng.choice((1, 1, 1, 2))
        for _ in range(steps):
            found = self.rng.choice(kinds)(is_first=not init)
            first, rest = found or self.accumulate(is_first=not init) or ([], [])
            init += first
            body += rest
        if self.chance(0.2) and not any(isinstance(stmt, Let) for stmt in body):
            body = self._conditional(body)
        self.lets = []
        return init, body

    def _prefetch(self) -> list[Stmt]:
        usable = [
            found for found in self.buffers if found.handle and not found.name.startswith("AT")
        ]
        if not usable:
            return []
        buffer = self.rng.choice(usable)
        indices = self.indices(buffer.axes)
        return [Prefetch(buffer.name, indices)] if indices is not None else []

    def _conditional(self, body: list[Stmt]) -> list[Stmt]:
        stores = [store.buffer for stmt in body for store in _stores(stmt)]
        allocated = {found.name for found in self.buffers if found.handle is None}
        if allocated & set(stores):
            return body
        condition = self.terms.condition(1).expr
        if self.chance(0.6) and len(body) > 1:
            return [If(condition, tuple(body[:1]), tuple(body[1:]))]
        return [If(condition, tuple(body))]

    def _stored(
        self, buffer: str, indices: tuple[Expr, ...], content: Term, found: list[Term]
    ) -> None:
        """What is stored to is read at the same place only, until the outermost iteration ends."""
        self.blocked.add(buffer)
        before = self.contents[buffer]
        self.contents[buffer] = Term(
            content.expr,
            content.dtype,
            max(before.bound, content.bound),
            max(before.fraction, content.fraction),
            max(before.error, content.error),
        )
        found.append(replace(self.contents[buffer], expr=Load(buffer, indices, content.dtype)))

    def assign(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """One value for each point."""
        place = self._all_points()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(self.dtypes)
        value = self.terms.value(dtype, self.rng.choice((1, 2, 3)))
        buffer = self._output(axes, dtype)
        self._stored(buffer.name, indices, value, self.own_elements)
        self._tolerate(buffer)
        return [], [Store(buffer.name, indices, value.expr)]

    def _all_points(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """Axes and indices of an element for each point of all iterations around."""
        if any(not bound.is_own for bound in self.scope):
            return None
        axes = [bound.axis for bound in self.scope]
        indices: list[Expr] = [Var(bound.var, "int64") for bound in self.scope]
        is_dense = all(self.forest.is_unique(axis) for axis in axes) and self.chance(0.3)
        if is_dense or not self._is_storable(axes):
            roots = [self._root_of(self.forest.length(axis)) for axis in axes]
            if not all(self.forest.is_unique(axis) for axis in axes) or len({*roots, ""}) <= len(
                roots
            ):
                return None
            return tuple(roots), tuple(indices)
        order = self._merged(axes, [])
        found = [indices[axes.index(axis)] for axis in order]
        return tuple(order), tuple(found)

    def _root_of(self, length: int) -> str:
        """A dense root axis at least that long."""
        fitting = [
            axis.name for axis in self.forest.axes
            if axis.parent is None and self.forest.length(axis.name) >= length
        ]  # fmt: skip
        if fitting and self.chance(0.7):
            return self.rng.choice(fitting)
        if len(self.forest.axes) >= 12:
            return ""
        return self.forest.add_root(length)

    def target(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """Axes and indices of an element that several points may share."""
        forest = self.forest
        if self.is_careless and self.chance(0.4):
            axes = self.axes_to_read()
            indices = self.indices(axes)
            return None if indices is None else (axes, indices)
        superset = self._into_superset()
        if superset is not None and self.chance(0.7):
            return superset
        own = [bound.axis for bound in self.scope if bound.is_own]
        chosen: list[str] = []
        for _ in range(self.rng.choice((1, 1, 2))):
            first = self.rng.choice(own) if own and self.chance(0.8) else None
            first = first or self._root_of(self.rng.choice((2, 3, 5)))
            if not first:
                continue
            added = [axis for axis in forest.ancestors(first) if axis not in chosen]
            if self._is_storable([*chosen, *added]):
                chosen += added
        indices = self.indices(chosen, exact=True)
        return None if indices is None or not chosen else (tuple(chosen), indices)

    def _into_superset(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """The same coordinates in a sibling that has all of them."""
        for relation in self.forest.relations:
            mine = [bound for bound in self.scope if bound.axis == relation.left and bound.is_own]
            above = self.forest.ancestors(relation.right)[:-1]
            if mine and all(any(b.axis == axis and b.is_own for b in self.scope) for axis in above):
                indices = self.indices(above, exact=True)
                if indices is not None:
                    return (*above, relation.right), (*indices, Var(mine[0].var, "int64"))
        return None

    def accumulate(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """Several values for each element, combined by a reducer of the language."""
        place = self.target()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(self.dtypes)
        op = self._reduce_op(dtype)
        value = self.terms.value(dtype, self.rng.choice((1, 2, 2, 3)))
        if op == "mul" and dtype in FLOATS:
            sign = self.terms.condition(1).expr
            value = Term(Select(sign, constant(1, dtype), constant(-1, dtype)), dtype, 1)
        buffer = self._output(axes, dtype)
        has_init = (is_first and self.chance(0.7)) or buffer.handle is None
        if buffer.handle is None and not is_first:
            return None
        init, start = self._init(buffer, indices, op) if has_init else ([], 0.0)
        many = self.most_points()
        content = self.accumulated(value, op, many, start=max(start, 0 if has_init else 7))
        stmt = Store(buffer.name, indices, self._combined(buffer, indices, op, value))
        self._stored(buffer.name, indices, content, self.pending)
        self._tolerate(buffer)
        return init, [stmt]

    def _output(self, axes: tuple[str, ...], dtype: str) -> SparseBuffer:
        """A buffer that nothing around reads or stores to: a new one, or one that is there."""
        usable = [
            found for found in self.buffers
            if found.axes == axes and found.dtype == dtype
            and found.name not in self.read | self.blocked and not found.name.startswith("AT")
        ]  # fmt: skip
        if usable and self.chance(0.4):
            return self.rng.choice(usable)
        return self.buffer(axes, dtype, is_read=False)

    def _reduce_op(self, dtype: str) -> BinaryOp:
        if dtype == "bool":
            return self.rng.choice(("and", "or"))
        return self.rng.choice(FLOAT_OPS)

    def _init(
        self, buffer: SparseBuffer, indices: tuple[Expr, ...], op: BinaryOp
    ) -> tuple[list[Stmt], float]:
        """The reducer's identity, or another number."""
        dtype = buffer.dtype
        start: Expr = identity("add" if op == "sub" else op, dtype)
        most = 4.0
        if self.chance(0.3):
            start = self._constant(dtype).expr
        elif dtype in INTEGERS:
            most = largest(dtype)
        elif dtype in FLOATS and self.chance(0.15):
            names = [index.name for index in indices if isinstance(index, Var)]
            if names:
                most = 20.0
                start = Cast(dtype, Var(self.rng.choice(names), "int64"))
        return [Store(buffer.name, indices, start)], most

    def _combined(
        self, buffer: SparseBuffer, indices: tuple[Expr, ...], op: BinaryOp, value: Term
    ) -> Expr:
        element = Load(buffer.name, indices, buffer.dtype)
        if op in ("add", "sub") and self.chance(0.2):
            other = self._constant(buffer.dtype).expr
            return Binary("sub", Binary(op, element, value.expr), other)
        if op != "sub" and self.chance(0.25):
            return Binary(op, value.expr, element)
        return Binary(op, element, value.expr)

    def accumulated(self, value: Term, op: BinaryOp, many: float, *, start: float = 4) -> Term:
        """What is known of so many values combined."""
        dtype = value.dtype
        if dtype not in FLOATS:
            bound = 1 if dtype == "bool" else largest(dtype)
            return Term(value.expr, dtype, bound)
        if op not in ("add", "sub"):
            bound = max(value.bound, start)
            return Term(value.expr, dtype, bound, value.fraction, value.error)
        bound = start + many * (value.bound + 3)
        error = many * value.error
        found = term(value.expr, dtype, bound, fraction=value.fraction, error=error)
        if found.error:
            extra = many * 2.0 ** (1 - SIGNIFICANT[dtype]) * bound
            return Term(value.expr, dtype, bound, 0, found.error + extra)
        return found

    def _tolerate(self, buffer: SparseBuffer) -> None:
        if buffer.handle is not None:
            self.tolerances[buffer.handle] = self.contents[buffer.name].error

    def combine(self, *, is_first: bool) -> tuple[list[Stmt], list[Stmt]] | None:
        """A declared reducer of tuples."""
        place = self.target()
        if place is None:
            return None
        axes, indices = place
        dtype = self.rng.choice(("float32", "float64", "int32", "int64", "uint16"))
        makers = [found for found in REDUCERS[dtype in FLOATS]
                  if not (self.is_special and found is largest_and_where)]  # fmt: skip
        reducer = self.rng.choice(makers)(self.fresh("reducer"), dtype)
        values = [self._summand(var.dtype) for var in reducer.lhs]
        buffers = [self.buffer(axes, var.dtype, is_read=True) for var in reducer.lhs]
        self.reducers.append(reducer)
        stores = tuple(
            Store(buffer.name, indices, value.expr)
            for buffer, value in zip(buffers, values, strict=True)
        )
        init = []
        if is_first and self.chance(0.75):
            pairs = zip(buffers, reducer.identity, strict=True)
            init = [Store(buffer.name, indices, start) for buffer, start in pairs]
        for buffer in buffers:
            self.blocked.add(buffer.name)
            bound = MOST if buffer.dtype in FLOATS else largest(buffer.dtype)
            self.contents[buffer.name] = Term(constant(0, buffer.dtype), buffer.dtype, bound)
            self.tolerances[str(buffer.handle)] = 0.0
        return init, [Combine(reducer.name, stores)]

    def _summand(self, dtype: str) -> Term:
        """A value whose sums are exact."""
        found = self.terms.exact(dtype, 2)
        if dtype in FLOATS:
            most = found.bound * 2.0**found.fraction * (self.most_points() + 1)
            if most > 2.0 ** SIGNIFICANT[dtype]:
                return self._constant(dtype)
        return found


def _stores(stmt: Stmt) -> list[Store]:
    match stmt:
        case Store():
            return [stmt]
        case Combine():
            return list(stmt.stores)
        case _:
            return []
