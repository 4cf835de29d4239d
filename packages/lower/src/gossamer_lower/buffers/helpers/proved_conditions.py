"""Removes the checks that the lowering of buffers added, if they are proved to succeed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import iterators_of_init
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.arith.simplify import FALSE, TRUE
from gossamer_ir.core import build
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    Block,
    BlockIter,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Load,
    Search,
    Stmt,
    Unary,
    While,
)
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.references import free_vars
from gossamer_ir.traversal.rewrite import map_children
from gossamer_lower.buffers.helpers.position_checks import Check, PositionChecks

MAX_NESTING = 3
"""The proof of a check may need the proof of others, up to this depth; deeper checks stay."""


def without_proved(function: Function, checks: PositionChecks) -> Function:
    """Return a function of the loop stage without the checks that are proved at their program point.

    They are removed from the conditions of `IfThenElse` and `Guard`.
    """
    prover = _ConditionProver(function, checks)
    return replace(function, body=prover.body(function.body))


class _ConditionProver:
    """Visits the statements in order and tracks the conditions that hold at each of them."""

    def __init__(self, function: Function, checks: PositionChecks) -> None:
        self._function = function
        self._checks = checks
        self._point = ProgramPoint(function)
        self._known: list[Expr] = []
        self._nesting = 0
        self._conditions: list[Expr] = []
        self._params = {param.name for param in function.params}
        self._choices: dict[tuple[int, int], tuple[IfThenElse, Expr]] = {}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        mark, choices = len(self._known), self._choices
        with self._point.scope():
            for stmt in body:
                self._choices = {}
                simplified = self._statement(stmt)
                if simplified is not None:
                    result.append(simplified)
                    self._point.after(simplified)
                if isinstance(simplified, Guard):
                    self._known += _parts(simplified.condition)
        del self._known[mark:]
        self._choices = choices
        return tuple(result)

    def _statement(self, stmt: Stmt) -> Stmt | None:
        match stmt:
            case Guard():
                condition = self._rest(stmt.condition)
                return None if condition is None else replace(stmt, condition=condition)
            case For():
                return self._loop(stmt)
            case While():
                condition = self._expr(stmt.condition)
                with self._holding(condition, stmt.body):
                    return While(condition, self.body(stmt.body))
            case If():
                return self._if(stmt)
            case Block():
                return self._block(stmt)
        simplified: Stmt = map_children(stmt, self._expr)
        return simplified

    def _loop(self, loop: For) -> For:
        bare = map_children(replace(loop, body=()), self._expr)
        with self._point.inside(loop):
            return replace(bare, body=self.body(loop.body))

    def _if(self, stmt: If) -> If:
        condition = self._expr(stmt.condition)
        then_body = self._side(condition, stmt.then_body)
        return If(condition, then_body, self._side(Unary("not", condition), stmt.else_body))

    def _side(self, condition: Expr, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        self._conditions.append(condition)
        with self._holding(condition, body):
            result = self.body(body)
        self._conditions.pop()
        return result

    def _block(self, block: Block) -> Block:
        values = tuple(self._expr(iterator.value) for iterator in block.iters)
        init = self._init(block) if block.init else ()
        with self._point.scope():
            predicate = self._predicate(block)
            iters = tuple(
                replace(self._bound(item), value=value)
                for item, value in zip(block.iters, values, strict=True)
            )
            with self._holding(TRUE if predicate is None else predicate, block.body):
                body = self.body(block.body)
        return replace(block, iters=iters, predicate=predicate, init=init, body=body)

    def _predicate(self, block: Block) -> Expr | None:
        """Return the predicate of a block. It is evaluated even if an iterator is outside its domain, so
        only the bindings are assumed, not the domains."""
        if block.predicate is None:
            return None
        with self._point.scope():
            for iterator in block.iters:
                self._point.assume_binding(iterator)
            result: Expr = self._expr(block.predicate)
        return result

    def _bound(self, iterator: BlockIter) -> BlockIter:
        """Return the iterator, and assumes from here on that it lies in its domain."""
        bound = replace(iterator, domain=map_children(iterator.domain, self._expr))
        self._point.assume_iterator(bound)
        return bound

    def _init(self, block: Block) -> tuple[Stmt, ...]:
        """Return the init. It also runs if the reduction loops have no iteration, so fewer assumptions
        hold: the ranges of the iterators that select its elements, and the enclosing conditions that
        depend on parameters only."""
        init = _ConditionProver(self._function, self._checks)
        for condition in self._conditions:
            if free_vars(condition) <= self._params:
                init._known += _parts(condition)
                init._point.assume(condition)
        for iterator in iterators_of_init(block):
            init._bound(iterator)
        return init.body(block.init)

    @contextmanager
    def _holding(self, condition: Expr, body: tuple[Stmt, ...] = ()) -> Iterator[None]:
        mark, made = len(self._known), len(self._choices)
        self._known += _parts(condition)
        with self._point.under(condition, body):
            yield
        del self._known[mark:]
        while len(self._choices) > made:
            self._choices.popitem()

    # --- expressions

    def _expr(self, node: Any) -> Any:
        if type(node) in LEAVES:
            return node
        if isinstance(node, IfThenElse):
            return self._same_choice(node)
        return map_children(node, self._expr)

    def _same_choice(self, node: IfThenElse) -> Expr:
        """Return `_choice` of the node, memoized. An index that may be absent occurs in its check and in
        its use, so nested ones occur exponentially often. A proof holds under further conditions, too."""
        key = id(node), self._nesting
        if key not in self._choices:
            self._choices[key] = node, self._choice(node)
        return self._choices[key][1]

    def _choice(self, node: IfThenElse) -> Expr:
        condition = self._rest(node.condition)
        if condition is None:
            value: Expr = self._expr(node.if_true)
            return value
        with self._holding(condition):
            if_true = self._expr(node.if_true)
        with self._holding(Unary("not", condition)):
            return IfThenElse(condition, if_true, self._expr(node.if_false))

    def _rest(self, condition: Expr) -> Expr | None:
        """Return a condition without the checks that are proved; None if all of it is."""
        if condition in self._checks and self._holds(condition):
            return None
        match condition:
            case Binary(op="and", lhs=lhs, rhs=rhs):
                return build.conjunction(self._rest(lhs), self._rest(rhs))
            case IfThenElse(condition=first, if_true=second, if_false=other) if other == FALSE:
                left = self._rest(first)
                with self._holding(first):
                    right = self._rest(second)
                if left is None or right is None:
                    return left if right is None else right
                return IfThenElse(left, right, FALSE)
            case IfThenElse(condition=first, if_true=other, if_false=second) if other == TRUE:
                with self._holding(Unary("not", first)):
                    right = self._rest(second)
                return None if right is None else IfThenElse(self._expr(first), TRUE, right)
        simplified: Expr = self._expr(condition)
        return simplified

    def _holds(self, check: Expr) -> bool:
        if not self._point.is_constant(check):
            return False
        if check in self._known:
            return True
        if self._nesting >= MAX_NESTING:
            return False
        self._nesting += 1
        is_proved = self._is_proved(self._checks[check])
        self._nesting -= 1
        return is_proved

    def _is_proved(self, proof: Check) -> bool:
        if proof.known is not None and self._expr(proof.known) in self._known:
            return True
        index, extent = self._expr(proof.index), self._expr(proof.extent)
        return self._point.is_in_range(index, extent) or self._is_of_found_fibre(index, extent)

    def _is_of_found_fibre(self, index: Expr, extent: Expr) -> bool:
        """Return whether an index is relative to the fibre that a search of kind `upper` found for its
        element: the last fibre that begins at or before the element, so the index is in bounds."""
        match index, extent:
            case (
                Binary(op="sub", lhs=element, rhs=start),
                Binary(op="sub", rhs=begin),
            ) if start == begin and (search := _fibre_search(start, element)) is not None:
                first, end = (
                    build.widen(Load(search.buffer, (at,), _dtype_of(start)))
                    for at in (build.sub(search.begin, build.ONE), search.end)
                )
                return self._point.is_in_range(
                    Binary("sub", element, first), Binary("sub", end, first)
                )
        return False


def _fibre_search(start: Expr, element: Expr) -> Search | None:
    """Return the search that found the fibre of an element, which begins at `start`; None if none did."""
    match _unwidened(start):
        case Load(
            buffer=buffer, indices=(Binary(op="sub", lhs=Search(kind="upper") as search, rhs=one),)
        ) if one == build.ONE and search.buffer == buffer and search.value == element:
            return search
    return None


def _unwidened(expr: Expr) -> Expr:
    value = getattr(expr, "value", expr)
    return value if isinstance(value, Load) and build.widen(value) == expr else expr


def _dtype_of(start: Expr) -> str:
    return dtype_of(_unwidened(start))


def _parts(condition: Expr) -> Iterator[Expr]:
    """Yield the conjuncts of a condition, including those of conditional evaluation."""
    match condition:
        case Binary(op="and", lhs=lhs, rhs=rhs):
            yield from _parts(lhs)
            yield from _parts(rhs)
        case IfThenElse(condition=first, if_true=second, if_false=other) if other == FALSE:
            yield from _parts(first)
            yield from _parts(second)
        case Unary(op="not", operand=IfThenElse(if_true=other) as either) if other == TRUE:
            yield Unary("not", either.condition)
            yield Unary("not", either.if_false)
        case _:
            yield condition
