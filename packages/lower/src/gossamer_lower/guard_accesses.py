"""Every access is proved in bounds or gets a guard, which stops the kernel with the buffer's name.

Proofs use the bounds of loops, the conditions of enclosing `If`s, and the facts about index buffers
that nothing in the function writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Stmt,
    Store,
    Unary,
    While,
)  # fmt: skip
from gossamer_ir.prove import Prover
from gossamer_ir.simplify import TRUE
from gossamer_ir.walk import children, free_vars, walk
from gossamer_lower.stages import map_functions


def guard_accesses(module: Module) -> Module:
    """Adds a `Guard` before each statement with an access that is not proved in bounds.

    Takes a loop-stage module without blocks, before vectorisation.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[i] = X[P[i]]
    ... ''')
    >>> print(body_text(guard_accesses(before)))
    for i in T.serial(n):
        T.guard(P[i] >= 0 and P[i] < n, X)
        Y[i] = X[P[i]]
    """
    return map_functions(module, "loop", "loop", _guard_function)


def _guard_function(function: Function) -> Function:
    written = {
        node.buffer for stmt in function.body for node in walk(stmt) if isinstance(node, Store)
    }
    facts = [fact for fact in function.facts if getattr(fact, "buffer", None) not in written]
    guarding = _Guarding(function, Prover(facts))
    return msgspec.structs.replace(function, body=guarding.body(function.body))


class _Guarding:
    """Walks the statements in order, with what holds at each of them."""

    def __init__(self, function: Function, prover: Prover) -> None:
        self._prover = prover
        self._lane_vars: set[str] = set()
        self._lane_conditions: list[Expr] = []
        self._shapes = {
            buffer.name: buffer.shape for buffer in function.buffers if isinstance(buffer, Buffer)
        }
        for shape in self._shapes.values():
            self._assume_sizes(shape)

    def _assume_sizes(self, shape: tuple[Expr, ...]) -> None:
        """A buffer that exists has no negative extent."""
        for extent in shape:
            if build.integer_value(extent) is None:
                self._prover.assume_nonnegative(extent)

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        mark = self._prover.mark()
        result: list[Stmt] = []
        for stmt in body:
            result += [*self._guards_before(stmt), self._statement(stmt)]
            self._learn(stmt)
        self._prover.release(mark)
        return tuple(result)

    def _learn(self, stmt: Stmt) -> None:
        """What holds after a statement, to the end of the body."""
        if isinstance(stmt, Let) and free_vars(stmt.value) & self._lane_vars:
            self._lane_vars.add(stmt.var.name)
        match stmt:
            case Let() if stmt.var.dtype == "int64":
                self._prover.assume(Compare("eq", stmt.var, stmt.value))
            case Allocate():
                self._shapes[stmt.buffer.name] = stmt.buffer.shape
                self._assume_sizes(stmt.buffer.shape)
            case Guard():
                self._prover.assume(stmt.condition)

    def _statement(self, stmt: Stmt) -> Stmt:
        mark = self._prover.mark()
        match stmt:
            case For():
                new: Stmt = self._loop(stmt)
            case While():
                new = msgspec.structs.replace(stmt, body=self.body(stmt.body))
            case If():
                new = self._if(stmt)
            case _:
                new = stmt
        self._prover.release(mark)
        return new

    def _loop(self, loop: For) -> For:
        self._prover.assume_range(loop.var, loop.start, loop.extent)
        if loop.kind != "vectorized":
            return msgspec.structs.replace(loop, body=self.body(loop.body))
        self._lane_vars.add(loop.var)
        body = self.body(loop.body)
        self._lane_vars.discard(loop.var)
        return msgspec.structs.replace(loop, body=body)

    def _if(self, stmt: If) -> If:
        mark = self._prover.mark()
        if free_vars(stmt.condition) & self._lane_vars:
            self._lane_conditions.append(stmt.condition)
            then_body = self.body(stmt.then_body)
            self._lane_conditions.pop()
        else:
            self._prover.assume(stmt.condition)
            then_body = self.body(stmt.then_body)
            self._prover.release(mark)
        return If(stmt.condition, then_body, self.body(stmt.else_body))

    def _guards_before(self, stmt: Stmt) -> Iterator[Guard]:
        """Guards for the expressions of a statement itself, innermost loads first."""
        if isinstance(stmt, For):
            self._require_proved_weight(stmt)
            expressions: list[Any] = [stmt.start, stmt.extent, stmt.grain]
        elif isinstance(stmt, If):
            expressions = [stmt.condition]
        elif isinstance(stmt, While):
            _require_proved_condition(list(self._guards(stmt.condition, None)))
            return
        else:
            expressions = [stmt]
        for expression in expressions:
            if expression is not None:
                yield from self._guards(expression, None)

    def _guards(self, node: Any, unless: Expr | None) -> Iterator[Guard]:
        """Guards of a node; `unless` is the condition under which it is not evaluated."""
        if isinstance(node, IfThenElse):
            yield from self._guards(node.condition, unless)
            yield from self._guards(node.if_true, _either(unless, Unary("not", node.condition)))
            yield from self._guards(node.if_false, _either(unless, node.condition))
            return
        for child in children(node):
            yield from self._guards(child, unless)
        if isinstance(node, (Load, Store)):
            condition = self._unproved(node)
            if node.predicate is not None:
                unless = _either(unless, Unary("not", node.predicate))
            if condition is not None:
                yield Guard(_either(unless, condition), node.buffer)

    def _require_proved_weight(self, loop: For) -> None:
        """The weight is evaluated anywhere in the range, and at its end."""
        if loop.weight is None:
            return
        mark = self._prover.mark()
        self._prover.assume_range(loop.var, loop.start, build.add(loop.extent, build.ONE))
        guards = list(self._guards(loop.weight, None))
        self._prover.release(mark)
        if guards:
            raise UnsupportedError(
                "lower.guarded_weight",
                f"The weight of the loop {loop.var} reads {guards[0].buffer} where it is not proved "
                "in bounds.",
                hint="Leave the weight out, or use the indptr of the loop's own axis.",
            )

    def _unproved(self, access: Load | Store) -> Expr | None:
        """The part of "in bounds" that is not proved; None where all of it is.

        An access that is the same in all lanes is not masked, so what holds in a lane does not help.
        """
        is_masked = any(free_vars(index) & self._lane_vars for index in access.indices)
        mark = self._prover.mark()
        for condition in self._lane_conditions if is_masked else ():
            self._prover.assume(condition)
        unproved = self._out_of_bounds(access)
        self._prover.release(mark)
        if unproved is not None and self._lane_conditions and not is_masked:
            raise _not_masked(access)
        return unproved

    def _out_of_bounds(self, access: Load | Store) -> Expr | None:
        condition: Expr | None = None
        for index, extent in zip(access.indices, self._shapes[access.buffer], strict=True):
            wide = build.widen(index)
            for part in (Compare("ge", wide, build.ZERO), Compare("lt", wide, extent)):
                if not self._prover.proves(part):
                    condition = build.conjunction(condition, part)
        return condition


def _either(first: Expr | None, second: Expr) -> Expr:
    """First or second, which is evaluated only where the first does not hold."""
    return second if first is None else IfThenElse(first, TRUE, second)


def _require_proved_condition(guards: list[Guard]) -> None:
    if guards:
        raise UnsupportedError(
            "lower.guarded_while",
            f"The condition of a while loop reads {guards[0].buffer} where it is not proved in bounds.",
            hint="Compute the condition in the body, into a buffer of one element.",
        )


def _not_masked(access: Load | Store) -> UnsupportedError:
    return UnsupportedError(
        "lower.unmasked_lane",
        f"An access of {access.buffer} is the same in all lanes of a vectorized loop, and in bounds "
        "only where a condition on the lane holds.",
        hint="Read it before the loop, or do not vectorize.",
    )
