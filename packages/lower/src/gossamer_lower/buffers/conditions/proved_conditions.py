"""Removes the position conditions that the lowering of buffers added, if they are proved to hold."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import iters_of_init
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.core.statement_kinds import Body, effects_of, is_stmt
from gossamer_ir.nodes import Block, BlockIter, Expr, Function, Guard, Node, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import condition_after, loop_of
from gossamer_lower.buffers.conditions.condition_removal import ConditionRemover
from gossamer_lower.buffers.layout.position_conditions import PositionConditions
from gossamer_lower.statements.rebuild import replace_bodies


def without_proved(function: Function, conditions: PositionConditions) -> Function:
    """Return a function of the loop stage without the position conditions that are proved where they occur.

    They are removed from the conditions of `IfThenElse` and `Guard`.
    """
    prover = _ConditionProver(function, conditions)
    return replace(function, body=prover.body(function.body))


class _ConditionProver:
    """Visits the statements in order and tracks the conditions that hold at each of them."""

    def __init__(self, function: Function, conditions: PositionConditions) -> None:
        self._function = function
        self._added = conditions
        self._point = ProgramPoint(function)
        self._remover = ConditionRemover(self._point, conditions)
        self._conditions: list[Expr] = []
        self._params = {param.name for param in function.params}

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        with self._remover.scope():
            for stmt in body:
                # Results for the last statement may depend on conditions that this one ends or changes.
                self._remover.begin_stmt()
                simplified = self._stmt(stmt)
                if simplified is not None:
                    result.append(simplified)
                    # The simplified statement: what it binds is stated in terms of what is still there.
                    self._point.move_past(simplified)
                    condition = condition_after(simplified)
                    if condition is not None:
                        self._remover.know(condition)
        return tuple(result)

    # Other statements: stay, and end what may be moved; only a guard is moved or removed.
    def _stmt(self, stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, Guard):
            condition = self._remover.without_proved(stmt.condition)
            return None if condition is None else replace(stmt, condition=condition)
        if isinstance(stmt, Block):
            return self._block(stmt)
        bare = map_children(stmt, self._outside_bodies)
        with self._in_loop(stmt):
            return replace_bodies(
                bare, {body.field: self._inside(body) for body in effects_of(bare).bodies}
            )

    def _outside_bodies(self, child: Node) -> Any:
        return child if is_stmt(child) else self._remover.expr(child)

    def _in_loop(self, stmt: Stmt) -> AbstractContextManager[None]:
        loop = loop_of(stmt)
        return nullcontext() if loop is None else self._point.inside(loop)

    def _inside(self, body: Body) -> tuple[Stmt, ...]:
        if body.condition is None:
            return self.body(body.stmts)
        self._conditions.append(body.condition)
        with self._remover.holding(body.condition, body.stmts):
            result = self.body(body.stmts)
        self._conditions.pop()
        return result

    def _block(self, block: Block) -> Block:
        values = tuple(self._remover.expr(iterator.value) for iterator in block.iters)
        # Before the scope below, whose assumptions on reduction iterators do not hold for the init.
        init = self._init(block) if block.init else ()
        with self._point.scope():
            predicate = self._predicate(block)
            iters = tuple(
                replace(self._assume_domain(iterator), value=value)
                for iterator, value in zip(block.iters, values, strict=True)
            )
            with self._remover.holding(TRUE if predicate is None else predicate, block.body):
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
            result: Expr = self._remover.expr(block.predicate)
        return result

    def _assume_domain(self, iterator: BlockIter) -> BlockIter:
        """Return the iterator, and assumes from here on that it lies in its domain."""
        bound = replace(iterator, domain=map_children(iterator.domain, self._remover.expr))
        self._point.assume_iterator(bound)
        return bound

    def _init(self, block: Block) -> tuple[Stmt, ...]:
        """Return the init. It also runs if the reduction loops have no iteration, so fewer assumptions
        hold: the ranges of the iterators that select its elements, and the enclosing conditions that
        depend on parameters only."""
        init = _ConditionProver(self._function, self._added)
        for condition in self._conditions:
            # A condition on loops may be inside of a reduction loop, before which the init runs.
            if free_vars(condition) <= self._params:
                init._remover.know(condition)
                init._point.assume(condition)
        for iterator in iters_of_init(block):
            init._assume_domain(iterator)
        return init.body(block.init)
