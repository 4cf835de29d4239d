"""Random iterations over a forest of axes: the axes that they visit, their order and their nesting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gossamer_ir.nodes import (
    AttachAxis,
    DenseFixed,
    FuseAxes,
    Iteration,
    IterationAxis,
    OverAxis,
    Stmt,
)
from gossamer_ir.traversal.free_vars import free_vars
from tests.fuzzing.programs.buffers import Bound
from tests.fuzzing.programs.statements import Stores

MAX_POINTS = 120


@dataclass
class Bodies(Stores):
    """Draws iterations one after the other."""

    def iteration(self) -> Iteration:
        """Draws an outermost iteration, with or without nested ones."""
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
            inner = self._members(tuple(bound.axis for bound in self.scope), most=2)
            if inner and self.chance(0.8):
                body.append(self._iteration(inner, depth=1))
            else:
                body += self.stmts(outer)[1]
        del self.scope[before:]
        self._leave(blocked)
        kinds = "".join(self.rng.choice("SSR") for _ in vars_)
        return Iteration(name, self._items(outer), kinds, vars_, tuple(body))

    def _iteration(self, members: list[tuple[str, str | None]], *, depth: int) -> Iteration:
        name, before = self.fresh("step"), len(self.scope)
        vars_ = self._enter(members)
        blocked = set(self.blocked)
        init, body = self.stmts(members)
        del self.scope[before:]
        if depth:
            self.own_elements += self.pending
            self.pending = []
        else:
            self._leave(blocked)
        in_init = {name for stmt in init for name in free_vars(stmt)}
        kinds = "".join("S" if var in in_init or self.chance(0.3) else "R" for var in vars_)
        return Iteration(name, self._items(members), kinds, vars_, tuple(body), tuple(init))

    def _leave(self, blocked: set[str]) -> None:
        """Ends an outermost iteration."""
        self.blocked, self.read = blocked, set()
        self.own_elements, self.pending = [], []

    def _enter(self, members: list[tuple[str, str | None]]) -> tuple[str, ...]:
        vars = []
        for axis, attached in members:
            parent = self.forest.slots[axis].axis.parent
            is_own = attached is None and (
                parent is None or any(bound.axis == parent for bound in self.scope)
            )
            bound = Bound(self.fresh("v"), axis, is_own, is_free=attached is None and not is_own)
            self.scope.append(bound)
            vars.append(bound.var)
        return tuple(vars)

    def _members(self, around: tuple[str, ...], *, most: int = 4) -> list[tuple[str, str | None]]:
        """Draws axes, each with the axis that it is attached to, and limits the number of points."""
        forest, rng = self.forest, self.rng
        members: list[tuple[str, str | None]] = []
        points = float(np.prod([max(self.forest.most(axis), 1) for axis in around]))
        names = [axis.name for axis in forest.axes]
        for _ in range(rng.randint(1, 3)):
            choice = rng.choice(names[-2:] if self.chance(0.4) else names)
            wanted = [axis for axis in forest.ancestors(choice) if axis not in around]
            for axis in wanted:
                here = [*around, *(name for name, _ in members)]
                if axis in here or len(members) >= most or not self._is_startable(axis, here):
                    continue
                if points * self.forest.most(axis) > MAX_POINTS:
                    break
                points *= max(self.forest.most(axis), 1)
                members.append((axis, None))
        members = self._mixed(members)
        here = [*around, *(name for name, _ in members)]
        if self.chance(0.25) and len(members) < most:
            members += self._free(here, points)
            here = [*around, *(name for name, _ in members)]
        if self.chance(0.3) and here:
            members += self._attached(here, points)
        return members

    def _is_startable(self, axis_name: str, here: Sequence[str]) -> bool:
        """True if a fiber of the axis is selected, which a dense axis without its parent does not do."""
        parent = self.forest.slots[axis_name].axis.parent
        return parent is None or (parent in here and not self._is_free(parent, here))

    def _is_free(self, axis_name: str, here: Sequence[str]) -> bool:
        """True if a dense axis is iterated without its parent, or before it."""
        bound = [other.is_free for other in self.scope if other.axis == axis_name]
        parent = self.forest.slots[axis_name].axis.parent
        before = here[: list(here).index(axis_name)]
        return any(bound) if bound else parent is not None and parent not in before

    def _free(self, here: list[str], points: float) -> list[tuple[str, str | None]]:
        """A dense axis without its parent."""
        candidates = [
            axis.name for axis in self.forest.axes
            if isinstance(axis, DenseFixed) and axis.parent is not None and axis.name not in here
            and axis.parent not in here and points * self.forest.most(axis.name) <= MAX_POINTS
        ]  # fmt: skip
        return [(self.rng.choice(candidates), None)] if candidates else []

    def _attached(self, here: list[str], points: float) -> list[tuple[str, str | None]]:
        candidates = []
        for axis in self.forest.axes:
            if axis.parent is None or axis.name in here or axis.parent in here:
                continue
            if self._is_startable(axis.parent, here) and self.forest.is_searchable(axis.parent):
                candidates.append(axis.name)
        candidates = [axis for axis in candidates if points * self.forest.most(axis) <= MAX_POINTS]
        return [(self.rng.choice(candidates), self.rng.choice(here))] if candidates else []

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
