"""Inserts bounds checks for the accesses of a function that are not proved in bounds.

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
from gossamer_ir.core.build import ONE, add
from gossamer_ir.core.conditions import short_circuit_or
from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Buffer,
    Expr,
    For,
    Function,
    IfThenElse,
    Load,
    Node,
    Search,
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import allocation_of, values_after, while_body
from gossamer_ir.traversal.walk import children, walk
from gossamer_lower.bounds_checks.check_list import CheckList
from gossamer_lower.bounds_checks.unproved_accesses import UnprovedAccesses
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import replace_bodies, with_body


def with_bounds_checks(function: Function, names: Set[str] | None = None) -> Function:
    """Return the function with a `Guard` before each statement with an access that is not proved in bounds.

    `names` restricts it to these buffers. Vectorized loops then count as serial: a condition on a lane
    protects every access under it.
    """
    return with_body(function, _AccessChecker(function, names).body(function.body))


class _AccessChecker(PointVisitor):
    """Inserts the bounds checks of one function. Conditions on lanes are kept apart from those of the
    point."""

    def __init__(self, function: Function, names: Set[str] | None) -> None:
        super().__init__(function)
        self._names = names
        self._unproved = UnprovedAccesses(self.point)

    def in_body(self, stmt: Stmt, body: Body) -> AbstractContextManager[None]:
        if body.condition is None:
            return super().in_body(stmt, body)
        return self._unproved.holding(body.condition, while_running=body.stmts)

    def move_past(self, stmt: Stmt, new: tuple[Stmt, ...]) -> None:
        # Conditions on such a variable become masks, too.
        for var, value in values_after(stmt):
            if free_vars(value) & self._unproved.lane_vars:
                self._unproved.lane_vars.add(var.name)
        buffer = allocation_of(stmt)
        if buffer is not None and self._names is None:
            self._require_lasting_size(buffer)
        super().move_past(stmt, new)

    def _require_lasting_size(self, buffer: Buffer) -> None:
        """Raise an error for a size that is read from mutable memory: checks evaluate the size again, and it
        may have changed."""
        for extent in buffer.shape:
            for node in walk(extent):
                if isinstance(node, Load) and node.buffer in self.point.written:
                    raise UnsupportedError(
                        "lower.insert_bounds_checks.changing_size",
                        f"The size of '{buffer.name}' is read from '{node.buffer}', which the "
                        "program writes.",
                        hint="Read it into a variable before.",
                    )

    def stmt(self, stmt: Stmt) -> Iterable[Stmt]:
        checks = self._checks_before(stmt)
        tested = while_body(stmt)
        if tested is not None:
            # The condition is evaluated again after each iteration, when the values in it may have changed.
            again = self._checks_before(stmt)
            inner = self.inside(stmt)
            body = (*getattr(inner, tested.field), *again)
            return (*checks, replace_bodies(inner, {tested.field: body}))
        if isinstance(stmt, For) and stmt.kind == "vectorized" and self._names is None:
            self._unproved.lane_vars.add(stmt.var)
            inside = self.inside(stmt)
            self._unproved.lane_vars.discard(stmt.var)
            return (*checks, inside)
        return (*checks, self.inside(stmt))

    def _checks_before(self, stmt: Stmt) -> CheckList:
        """Return the checks for the expressions of a statement itself, innermost loads first."""
        if isinstance(stmt, For):
            self._require_proved_weight(stmt)
            # The weight is not evaluated by the loop but by load balancing; it has just been proved.
            stmt = replace(stmt, weight=None)
        checks = CheckList()
        effects = effects_of(stmt)
        for expr in effects.evaluates:
            self._check(expr, None, checks)
        for write in effects.writes:
            self._check_access(write, None, checks)
        return checks

    def _check(self, node: Node, unless: Expr | None, checks: CheckList) -> None:
        """Append the checks of an expression; `unless` is the condition under which it is not evaluated."""
        # Only the side that is chosen is evaluated, so each side is checked under its condition.
        if type(node) is IfThenElse:
            self._check_sides(node, unless, checks)
            return
        # Operands before the access: their checks must stop the program before the index is loaded.
        for child in children(node):
            if type(child) not in LEAVES:
                self._check(child, unless, checks)
        self._check_access(node, unless, checks)

    def _check_access(self, node: Any, unless: Expr | None, checks: CheckList) -> None:
        """Append the check of an access itself, without those of its operands."""
        rule = CHECK_RULES.get(type(node))
        if rule is None or (self._names is not None and node.buffer not in self._names):
            return
        rule(self, node, unless, checks)

    def check_search(self, search: Search, unless: Expr | None, checks: CheckList) -> None:
        condition = self._unproved.window_condition(search)
        if condition is not None:
            checks.require(condition, unless, search.buffer)

    def check_element(self, access: Load | Store, unless: Expr | None, checks: CheckList) -> None:
        lanes = lanes_of_access(access)
        condition = (
            self._unproved.in_any_lane(access)
            if lanes is None
            else self._unproved.in_all_lanes_of(access, lanes)
        )
        # A scalar access under a false predicate does not happen. For vectors,
        # the check has the mask inside.
        if access.predicate is not None and lanes is None:
            unless = short_circuit_or(unless, Unary("not", access.predicate))
        if condition is not None:
            checks.require(condition, unless, access.buffer)

    def _check_sides(self, node: IfThenElse, unless: Expr | None, checks: CheckList) -> None:
        """Append the checks of a condition, and of each value where it is evaluated."""
        self._check(node.condition, unless, checks)
        opposite = Unary("not", node.condition)
        with self._unproved.holding(node.condition):
            self._check(node.if_true, short_circuit_or(unless, opposite), checks)
        with self._unproved.holding(opposite):
            self._check(node.if_false, short_circuit_or(unless, node.condition), checks)

    def _require_proved_weight(self, loop: For) -> None:
        """Raise an error unless the weight is proved in bounds. Load balancing evaluates it at any iteration
        and at the end of the range, outside of the loop, where no check runs."""
        if loop.weight is None or self._names is not None:
            return
        with self.point.scope():
            # One more than the extent: load balancing also evaluates the
            # weight at the end of the range, to know the total work.
            self.point.assume_range(loop, add(loop.extent, ONE))
            checks = CheckList()
            self._check(loop.weight, None, checks)
        if checks:
            buffer = checks[0].buffer
            raise UnsupportedError(
                "lower.insert_bounds_checks.unproved_weight",
                f"Cannot prove that the weight of the loop '{loop.var}' reads '{buffer}' in bounds.",
                hint="Leave the weight out, or use the indptr of the loop's own axis.",
            )


CHECK_RULES: dict[type[Any], Callable[[_AccessChecker, Any, Expr | None, CheckList], None]] = {
    Load: _AccessChecker.check_element,
    Store: _AccessChecker.check_element,
    Search: _AccessChecker.check_search,
}
"""Check of each type of access. A test compares the table with the accesses of the loop stage."""
