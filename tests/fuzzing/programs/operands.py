"""Random operands of a body: present and absent elements, lets, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Binary,
    Cast,
    DenseFixed,
    Expr,
    Fact,
    HasValue,
    InRange,
    Load,
    Monotone,
    SortedSegments,
    SparseBuffer,
    Var,
)
from gossamer_ir.traversal.free_vars import free_vars
from tests.fuzzing.oracle.arithmetic import FLOATS
from tests.fuzzing.programs.buffers import Buffers
from tests.fuzzing.programs.expressions import Term, Terms

MAX_INT32 = np.iinfo(np.int32).max


@dataclass
class Reads(Buffers):
    """Draws terms, and the coordinates of accesses."""

    def __post_init__(self) -> None:
        self.terms = Terms(self.rng, leaf=self.leaf, coordinate=self.coordinate, dtypes=self.dtypes)

    def max_points(self) -> float:
        """The maximum number of points of the enclosing iterations."""
        return float(np.prod([max(self.forest.most(bound.axis), 1) for bound in self.scope]))

    def coordinate(self) -> Term:
        """A variable, or a simple expression of it."""
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
        lets = [let for let in self.lets if let.dtype == dtype]
        if lets and self.chance(0.5):
            return rng.choice(lets)
        kind = rng.random()
        if kind < 0.12:
            return self._constant(dtype)
        if kind < 0.2 and dtype in ("float32", "float64", "int32", "int64"):
            return self._scalar(dtype)
        if kind < 0.27 and dtype != "bool" and self.scope:
            return self.terms.cast(self.coordinate(), dtype)
        names = {bound.var for bound in self.scope} | set(self.scalars) | set(self.forest.scalars)
        elements = [
            element
            for element in self.own_elements
            if element.dtype == dtype and free_vars(element.expr) <= names
        ]
        if elements and self.chance(0.5):
            return rng.choice(elements)
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
        """An element of an existing or a new buffer."""
        usable = [
            buffer
            for buffer in self.buffers
            if buffer.dtype == dtype and buffer.name not in self.blocked
        ]
        self.rng.shuffle(usable)
        if len(usable) > 2 or self.chance(0.55):
            for buffer in usable:
                indices = self.indices(buffer.axes)
                if indices is not None:
                    content = self.contents[buffer.name]
                    self.read.add(buffer.name)
                    return Term(Load(buffer.name, indices, dtype), dtype, content.bound,
                                content.fraction, content.error)  # fmt: skip
        place = self.into_superset() if self.chance(0.2) else None
        axes, indices = place or self._anywhere()
        if indices is None:
            return None
        buffer = self.buffer(axes, dtype, is_read=True)
        content = self.contents[buffer.name]
        self.read.add(buffer.name)
        return Term(Load(buffer.name, indices, dtype), dtype, content.bound)

    def _anywhere(self) -> tuple[tuple[str, ...], tuple[Expr, ...] | None]:
        axes = self.axes_to_read()
        return axes, self.indices(axes)

    def into_superset(self) -> tuple[tuple[str, ...], tuple[Expr, ...]] | None:
        """The same coordinates along an axis that contains all of them."""
        own_vars = {bound.axis: Var(bound.var, "int64") for bound in self.scope if bound.is_own}
        for below, above in self.forest.supersets():
            chain = self.forest.ancestors(below)
            if own_vars.keys() >= set(chain):
                return tuple(self.forest.ancestors(above)), tuple(own_vars[axis] for axis in chain)
        return None

    def axes_to_read(self) -> tuple[str, ...]:
        """The chain of ancestors of one axis, with or without a second chain."""
        forest, rng = self.forest, self.rng
        axes = [bound.axis for bound in self.scope]
        siblings = self._siblings()
        if siblings and self.chance(0.15):
            return rng.choice(siblings)
        first = rng.choice(axes) if axes and self.chance(0.7) else rng.choice(forest.axes).name
        chosen = forest.ancestors(first)
        if self.chance(0.3):
            other = rng.choice(axes) if axes and self.chance(0.6) else rng.choice(forest.axes).name
            added = [axis for axis in forest.ancestors(other) if axis not in chosen]
            if added and self._is_storable([*chosen, *added]):
                chosen = [*chosen, *added] if self.chance(0.6) else self._merged(chosen, added)
        return tuple(chosen)

    def _merged(self, chosen: list[str], added: list[str]) -> list[str]:
        """A merge of two chains in any order that has parents before children."""
        pairs = [(axis, None) for axis in (*chosen, *added)]
        return [axis for axis, _ in self._mixed(pairs)]

    def _mixed(self, members: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
        """The axes in any order that has parents before children."""
        if self.chance(0.6):
            return members
        left, done = list(members), []
        names = {axis for axis, _ in members}
        while left:
            ready = [
                entry
                for entry in left
                if (parent := self.forest.slots[entry[0]].axis.parent) not in names
                or parent in [axis for axis, _ in done]
            ]
            done.append(self.rng.choice(ready))
            left.remove(done[-1])
        return done

    def indices(self, axes: Sequence[str], *, exact: bool = False) -> tuple[Expr, ...] | None:
        """Coordinates along axes; `exact`: of an element that exists at every point."""
        indices: list[Expr] = []
        own_axes: set[str] = set()
        for axis in axes:
            parent = self.forest.slots[axis].axis.parent
            is_below_own = parent is None or parent in own_axes
            index, is_own = self._index(axis, is_below_own=is_below_own, exact=exact)
            if index is None:
                return None
            indices.append(index)
            if is_own:
                own_axes.add(axis)
        return tuple(indices)

    def _index(
        self, axis_name: str, *, is_below_own: bool, exact: bool
    ) -> tuple[Expr | None, bool]:
        mine = [bound for bound in self.scope if bound.axis == axis_name and bound.is_own]
        node = self.forest.slots[axis_name].axis
        if mine and is_below_own and (exact or self.chance(0.75)):
            return Var(mine[0].var, "int64"), True
        if not self.forest.is_searchable(axis_name):
            is_usable = bool(mine) and is_below_own
            return (Var(mine[0].var, "int64") if is_usable else None), is_usable
        if exact and not isinstance(node, DenseFixed):
            return None, False
        if not isinstance(node, DenseFixed):
            return self._any_coordinate(), False
        return self._inside(axis_name, node), False

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

    def _inside(self, axis_name: str, node: DenseFixed) -> Expr | None:
        """A coordinate within a dense axis: a variable that is not larger, a remainder, an element of an
        index array, a number."""
        length = self.forest.length(axis_name)
        if self.is_careless and self.chance(0.5):
            return self._any_coordinate()
        if not length:
            return None
        fitting = [bound for bound in self.scope if 0 < self.forest.length(bound.axis) <= length]
        if fitting and self.chance(0.75):
            return Var(self.rng.choice(fitting).var, "int64")
        gathered = self._gathered(axis_name)
        if gathered is not None and self.chance(0.4):
            return gathered
        if self.scope and self.chance(0.7):
            return Binary("floormod", self.coordinate().expr, node.length)
        return constant(self.rng.randrange(length), "int64")

    def _gathered(self, axis_name: str) -> Expr | None:
        """A coordinate that is read from an array over a dense root axis."""
        length = self.forest.length(axis_name)
        roots = [
            bound
            for bound in self.scope
            if isinstance(self.forest.slots[bound.axis].axis, DenseFixed)
            and self.forest.slots[bound.axis].axis.parent is None
        ]
        if not roots or not length:
            return None
        bound = self.rng.choice(roots)
        name = f"AT_{axis_name}_{bound.axis}"
        if all(buffer.name != name for buffer in self.buffers):
            count = self.forest.length(bound.axis)
            dtype = "int64" if length > MAX_INT32 else self.rng.choice(("int32", "int64"))
            drawn = [self.rng.randrange(length) for _ in range(count)]
            if count <= length:
                drawn = self.rng.sample(range(length), count)
            if self.chance(0.3):
                drawn.sort()
            self.arrays[name.lower()] = np.array(drawn, dtype)
            self.buffers.append(SparseBuffer(name, (bound.axis,), dtype, name.lower()))
            self.contents[name] = Term(constant(0, dtype), dtype, length)
            self._assume(name, drawn, self.forest.slots[axis_name].axis.length)
        buffer = next(buffer for buffer in self.buffers if buffer.name == name)
        read: Expr = Load(name, (Var(bound.var, "int64"),), buffer.dtype)
        return read if buffer.dtype == "int64" else Cast("int64", read)

    def _assume(self, name: str, drawn: Sequence[int], length: Expr) -> None:
        """Declares some facts about an index array."""
        true: list[Fact] = [InRange(name, constant(0, "int64"), length)]
        if drawn:
            at = self.rng.randrange(len(drawn))
            true.append(HasValue(name, constant(at, "int64"), constant(drawn[at], "int64")))
        if list(drawn) == sorted(drawn):
            true += [Monotone(name), SortedSegments(name, None, len({*drawn}) == len(drawn))]
        self.facts += [fact for fact in true if self.chance(0.4)]
