"""Guards the accesses of a function that are not proved in bounds.

Proofs use the bounds of loops, the enclosing conditions, and the facts about index buffers. Values
in mutable buffers are not assumed, except a condition until its operands are written. Expressions that may
overflow are never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from contextlib import AbstractContextManager
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.lane_projection import lanes_of_access
from gossamer_ir.core import build
from gossamer_ir.core.conditions import short_circuit_or
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Expr,
    For,
    Function,
    IfThenElse,
    Let,
    Load,
    Search,
    Stmt,
    Store,
    Unary,
    While,
)
from gossamer_ir.traversal.effects import Body, effects_of
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.walk import children, walk
from gossamer_lower.guards.guard_list import GuardList
from gossamer_lower.guards.unproved_accesses import UnprovedAccesses
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import with_body


def guard_accesses(function: Function, names: Set[str] | None = None) -> Function:
    """Return the function with a `Guard` before each statement with an access that is not proved in bounds.

    `names` restricts it to these buffers. Vectorized loops then count as serial: a condition on a lane
    protects every access under it.
    """
    return with_body(function, _AccessGuarder(function, names).body(function.body))


class _AccessGuarder(PointVisitor):
    """Guards the statements of one function; conditions on lanes are kept apart from those of the point."""

    def __init__(self, function: Function, names: Set[str] | None) -> None:
        super().__init__(function)
        self._names = names
        self._unproved = UnprovedAccesses(self.point)

    def in_body(self, stmt: Stmt, body: Body) -> AbstractContextManager[None]:
        if body.condition is None:
            return super().in_body(stmt, body)
        return self._unproved.holding(body.condition, while_running=body.statements)

    def move_past(self, stmt: Stmt, new: tuple[Stmt, ...]) -> None:
        # Conditions on such a variable become masks, too.
        if isinstance(stmt, Let) and free_vars(stmt.value) & self._unproved.lane_vars:
            self._unproved.lane_vars.add(stmt.var.name)
        if isinstance(stmt, Allocate) and self._names is None:
            self._require_lasting_size(stmt)
        super().move_past(stmt, new)

    def _require_lasting_size(self, stmt: Allocate) -> None:
        """Raise an error for a size that is read from mutable memory: guards evaluate the size again, and it
        may have changed."""
        for extent in stmt.buffer.shape:
            for node in walk(extent):
                if isinstance(node, Load) and node.buffer in self.point.written:
                    raise UnsupportedError(
                        "lower.insert_bounds_checks.changing_size",
                        f"The size of '{stmt.buffer.name}' is read from '{node.buffer}', which the "
                        "program writes.",
                        hint="Read it into a variable before.",
                    )

    def statement(self, stmt: Stmt) -> Iterable[Stmt]:
        guards = self._guards_before(stmt)
        if isinstance(stmt, While):
            # The condition is evaluated again after each
            # iteration, when the values in it may have changed.
            again = self._guards_before(stmt)
            inner = self.inside(stmt)
            return (*guards, with_body(inner, (*inner.body, *again)))
        if isinstance(stmt, For) and stmt.kind == "vectorized" and self._names is None:
            self._unproved.lane_vars.add(stmt.var)
            inside = self.inside(stmt)
            self._unproved.lane_vars.discard(stmt.var)
            return (*guards, inside)
        return (*guards, self.inside(stmt))

    def _guards_before(self, stmt: Stmt) -> GuardList:
        """Return the guards for the expressions of a statement itself, innermost loads first."""
        if isinstance(stmt, For):
            self._require_proved_weight(stmt)
            # The weight is not evaluated by the loop but
            # by load balancing; it has just been proved.
            stmt = replace(stmt, weight=None)
        guards = GuardList()
        effects = effects_of(stmt)
        for expression in effects.evaluates:
            self._guard(expression, None, guards)
        for write in effects.writes:
            self._guard_access(write, None, guards)
        return guards

    def _guard(self, node: Any, unless: Expr | None, guards: GuardList) -> None:
        """Append the guards of an expression; `unless` is the condition under which it is not evaluated."""
        # Only the side that is chosen is evaluated, so each side is guarded under its condition.
        if type(node) is IfThenElse:
            self._guard_sides(node, unless, guards)
            return
        # Operands before the access: their guards must stop the program before the index is loaded.
        for child in children(node):
            if type(child) not in LEAVES:
                self._guard(child, unless, guards)
        self._guard_access(node, unless, guards)

    def _guard_access(self, node: Any, unless: Expr | None, guards: GuardList) -> None:
        """Append the guard of an access itself, without those of its operands."""
        rule = GUARD_RULES.get(type(node))
        if rule is None or (self._names is not None and node.buffer not in self._names):
            return
        rule(self, node, unless, guards)

    def guard_search(self, search: Search, unless: Expr | None, guards: GuardList) -> None:
        condition = self._unproved.of_window(search)
        if condition is not None:
            guards.require(condition, unless, search.buffer)

    def guard_element(self, access: Load | Store, unless: Expr | None, guards: GuardList) -> None:
        lanes = lanes_of_access(access)
        condition = (
            self._unproved.in_any_lane(access)
            if lanes is None
            else self._unproved.in_all_lanes_of(access, lanes)
        )
        # A scalar access under a false predicate does not
        # happen. For vectors, the check has the mask inside.
        if access.predicate is not None and lanes is None:
            unless = short_circuit_or(unless, Unary("not", access.predicate))
        if condition is not None:
            guards.require(condition, unless, access.buffer)

    def _guard_sides(self, node: IfThenElse, unless: Expr | None, guards: GuardList) -> None:
        """Append the guards of a condition, and of each value where it is evaluated."""
        self._guard(node.condition, unless, guards)
        opposite = Unary("not", node.condition)
        with self._unproved.holding(node.condition):
            self._guard(node.if_true, short_circuit_or(unless, opposite), guards)
        with self._unproved.holding(opposite):
            self._guard(node.if_false, short_circuit_or(unless, node.condition), guards)

    def _require_proved_weight(self, loop: For) -> None:
        """Raise an error unless the weight is proved in bounds. Load balancing evaluates it at any iteration
        and at the end of the range, outside of the loop, where no guard runs."""
        if loop.weight is None or self._names is not None:
            return
        with self.point.scope():
            # One more than the extent: load balancing also evaluates the
            # weight at the end of the range, to know the total work.
            self.point.assume_range(loop, build.add(loop.extent, build.ONE))
            guards = GuardList()
            self._guard(loop.weight, None, guards)
        if guards:
            buffer = guards[0].buffer
            raise UnsupportedError(
                "lower.insert_bounds_checks.unproved_weight",
                f"Cannot prove that the weight of the loop '{loop.var}' reads '{buffer}' in bounds.",
                hint="Leave the weight out, or use the indptr of the loop's own axis.",
            )


GUARD_RULES: dict[type[Any], Callable[[_AccessGuarder, Any, Expr | None, GuardList], None]] = {
    Load: _AccessGuarder.guard_element,
    Store: _AccessGuarder.guard_element,
    Search: _AccessGuarder.guard_search,
}
"""How each type of access is guarded. A test compares the table with the accesses of the loop stage."""
