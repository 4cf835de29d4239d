"""Removes proved position conditions from expressions, at a program point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import ONE, sub, widen
from gossamer_ir.core.conditions import (
    ShortCircuit,
    as_short_circuit,
    conjunction,
    short_circuit_and,
    short_circuit_conjuncts,
    short_circuit_or,
)
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Expr, IfThenElse, Load, Node, Search, Stmt, Unary
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.rewrite import map_children
from gossamer_lower.buffers.layout.position_conditions import PositionConditions, ProofGoal

MAX_PROOF_DEPTH = 3
"""The proof of a condition may need the proof of others, up to this depth; deeper ones stay."""
MAX_PROOFS = 1000
"""The number of proofs that are tried for one statement; its further conditions stay. Programs of the corpus
need up to 28. The number grows exponentially with the depth of look-ups inside the index of a look-up:
without a limit, one random program with four levels of them took minutes."""


class ConditionRemover:
    """Removes proved position conditions from the expressions at `point`, which its user moves along the
    statements."""

    def __init__(self, point: ProgramPoint, conditions: PositionConditions) -> None:
        self.point = point
        self._conditions = conditions
        self._known: list[Expr] = []
        self._nesting = 0
        self._proofs = 0
        self._resolved: dict[tuple[int, int], tuple[IfThenElse, Expr]] = {}

    # --- facts that hold at a statement

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Return a context for the statements of a body, at whose end its conditions are forgotten."""
        mark, resolved = len(self._known), self._resolved
        with self.point.scope():
            yield
        del self._known[mark:]
        self._resolved = resolved

    def begin_stmt(self) -> None:
        """Forget the results for other statements, where other conditions hold, and their proofs."""
        self._resolved = {}
        self._proofs = 0

    def know(self, condition: Expr) -> None:
        """Record that a condition holds from here on; the point records it, too."""
        self._known += conditions_of(condition)

    @contextmanager
    def holding(self, condition: Expr, body: tuple[Stmt, ...] = ()) -> Iterator[None]:
        """Return a context in which a condition holds, inside `body`."""
        mark, made = len(self._known), len(self._resolved)
        self.know(condition)
        with self.point.under(condition, body):
            yield
        del self._known[mark:]
        # A fact that was proved under the condition is not known without it.
        while len(self._resolved) > made:
            self._resolved.popitem()

    # --- expressions

    def expr(self, node: Node) -> Any:
        """Return an expression without the position conditions that are proved."""
        if type(node) in LEAVES:
            return node
        if isinstance(node, IfThenElse):
            return self._same_choice(node)
        return map_children(node, self.expr)

    def _same_choice(self, node: IfThenElse) -> Expr:
        """Return `_resolve` of the node, memoized. An index that may be absent occurs in its condition and in
        its use, so nested ones occur exponentially often. A proof holds under further conditions, too."""
        # By identity: comparing deep expressions costs as much as the work
        # that is saved. The node is kept in the value, so its id is not
        # reused. Deeper proofs have a smaller budget, so they are kept apart.
        key = id(node), self._nesting
        if key not in self._resolved:
            self._resolved[key] = node, self._resolve(node)
        return self._resolved[key][1]

    def _resolve(self, node: IfThenElse) -> Expr:
        condition = self.without_proved(node.condition)
        if condition is None:
            value: Expr = self.expr(node.if_true)
            return value
        with self.holding(condition):
            if_true = self.expr(node.if_true)
        with self.holding(Unary("not", condition)):
            return IfThenElse(condition, if_true, self.expr(node.if_false))

    # Other operations: their operands are visited.
    def without_proved(self, condition: Expr) -> Expr | None:
        """Return a condition without the position conditions that are proved; None if all of it is."""
        if condition in self._conditions and self._holds(condition):
            return None
        match as_short_circuit(condition) or condition:
            case Binary(op="and", lhs=lhs, rhs=rhs):
                return conjunction(self.without_proved(lhs), self.without_proved(rhs))
            case ShortCircuit("and", first, second):
                left = self.without_proved(first)
                with self.holding(first):
                    right = self.without_proved(second)
                return left if right is None else short_circuit_and(left, right)
            case ShortCircuit("or", first, second):
                with self.holding(Unary("not", first)):
                    right = self.without_proved(second)
                return None if right is None else short_circuit_or(self.expr(first), right)
        simplified: Expr = self.expr(condition)
        return simplified

    def _holds(self, condition: Expr) -> bool:
        # The condition protects a value that may change before it is used.
        if not is_constant(condition, function=self.point.function):
            return False
        if condition in self._known:
            return True
        # A condition that occurs in its own proof would recurse forever.
        if self._nesting >= MAX_PROOF_DEPTH or self._proofs >= MAX_PROOFS:
            return False
        self._nesting += 1
        self._proofs += 1
        is_proved = self._is_proved(self._conditions[condition])
        self._nesting -= 1
        return is_proved

    def _is_proved(self, goal: ProofGoal) -> bool:
        # Cheap: another condition that was made before implies this one.
        if goal.known is not None and self.expr(goal.known) in self._known:
            return True
        index, extent = self.expr(goal.index), self.expr(goal.extent)
        return self.point.is_in_range(index, extent) or self._is_of_found_fiber(index, extent)

    def _is_of_found_fiber(self, index: Expr, extent: Expr) -> bool:
        """Return whether an index is relative to the fiber that a search of kind `upper` found for its
        element: the last fiber that begins at or before the element, so the index is in bounds."""
        match index, extent:
            case (
                Binary(op="sub", lhs=element, rhs=start),
                Binary(op="sub", rhs=begin),
            ) if start == begin and (search := _fiber_search(start, element)) is not None:
                first, end = (
                    widen(Load(search.buffer, (at,), _dtype_of(start)))
                    for at in (sub(search.begin, ONE), search.end)
                )
                return self.point.is_in_range(
                    Binary("sub", element, first), Binary("sub", end, first)
                )
        return False


def _fiber_search(start: Expr, element: Expr) -> Search | None:
    """Return the search that found the fiber of an element, which begins at `start`; None if none did."""
    match _strip_widening(start):
        case Load(
            buffer=buffer, indices=(Binary(op="sub", lhs=Search(kind="upper") as search, rhs=one),)
        ) if one == ONE and search.buffer == buffer and search.value == element:
            return search
    return None


def _strip_widening(expr: Expr) -> Expr:
    value = getattr(expr, "value", expr)
    return value if isinstance(value, Load) and widen(value) == expr else expr


def _dtype_of(start: Expr) -> str:
    return dtype_of(_strip_widening(start))


def conditions_of(condition: Expr) -> Iterator[Expr]:
    """Yield the conjuncts of a condition. `not (a or b)` has two: `not a` and `not b`."""
    for part in short_circuit_conjuncts(condition):
        negated = as_short_circuit(part.operand) if isinstance(part, Unary) else None
        if negated is not None and negated.op == "or":
            yield Unary("not", negated.first)
            yield Unary("not", negated.second)
        else:
            yield part
