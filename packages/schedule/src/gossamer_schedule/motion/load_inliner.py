"""Replaces the loads of a block's result by the expression that the block stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import zero_of
from gossamer_ir.core.statement_kinds import Body, effects_of
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, Expr, IfThenElse, Load, Node, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.statement_queries import loop_of
from gossamer_ir.traversal.substitute import substitute, substitute_subexprs
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.stored_values import is_function_of_element, value_by_element
from gossamer_schedule.motion.inline import own_nest, visit_conditions
from gossamer_schedule.motion.kept_values import is_constant_in_function, may_keep_values
from gossamer_schedule.regions.iterator_dimensions import determined_iters
from gossamer_schedule.regions.match_indices import match_all


class LoadInliner:
    """Replaces loads of a buffer, and tracks the conditions that hold at each statement."""

    def __init__(self, cursor: Cursor[Block], store: Store) -> None:
        self._cursor, self._store = cursor, store
        self._point = point_in_function(cursor.function)
        # The block may run again before its buffer is allocated anew.
        self._is_kept = may_keep_values(own_nest(cursor), store.buffer)
        self._is_constant = is_constant_in_function(value_by_element(store), cursor.function)
        iters = {iterator.var for iterator in cursor.node.iters}
        self._is_determined = iters <= determined_iters(cursor, store)

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self._stmt(stmt) for stmt in body)

    def _stmt(self, stmt: Stmt) -> Any:
        if self._store.buffer not in buffers_accessed(stmt):
            return stmt
        with self._point.scope():
            return self._inline_in(stmt)

    def _inline_in(self, stmt: Stmt) -> Any:
        if isinstance(stmt, Block):
            return self._block(stmt)
        bodies = effects_of(stmt).bodies
        # Before the range is assumed: the bounds of a loop are evaluated outside of it.
        header = self._exprs(replace(stmt, **{body.field: () for body in bodies}))
        loop = loop_of(stmt)
        if loop is not None:
            self._point.assume_loop(loop)
        return replace(header, **{body.field: self._inside(body) for body in bodies})

    def _inside(self, body: Body) -> tuple[Stmt, ...]:
        with self._point.scope():
            if body.condition is not None:
                self._point.assume(body.condition)
            return self.body(body.stmts)

    def _block(self, block: Block) -> Block:
        header = self._exprs(replace(block, body=(), init=(), reads=None, writes=None))
        for iterator in block.iters:
            # An init runs outside of the reduction loops, so only spatial iterators have a value there.
            if iterator.kind == "S":
                self._point.assume_iterator(iterator)
        init = self.body(block.init)
        for iterator in block.iters:
            self._point.assume_iterator(iterator)
        if block.predicate is not None:
            self._point.assume(block.predicate)
        changed: Block = replace(header, init=init, body=self.body(block.body))
        return changed

    def _exprs(self, node: Node) -> Any:
        return map_children(node, self._expr)

    def _expr(self, expr: Expr) -> Any:
        """Return an expression with loads replaced, innermost first."""
        inner = map_children(expr, self._expr)
        if isinstance(inner, Load) and inner.buffer == self._store.buffer:
            return self._value(inner)
        return inner

    def _value(self, load: Load) -> Expr:
        block = self._cursor.node
        free = {iterator.var for iterator in block.iters}
        point = match_all(self._store.indices, load.indices, free=free)
        if self._is_determined and point is not None:
            unproved = list(self._unproved_conditions(point))
            # Where the block does not compute the element, it may hold a value from an earlier run, not
            # just none.
            if unproved and self._is_kept:
                raise self._not_computed_error(load, needs=" and ".join(map(text_of, unproved)))
            value: Expr = substitute(self._store.value, point)
            # In order of evaluation: a later condition may read what an earlier one protects.
            for condition in reversed(unproved):
                value = IfThenElse(condition, value, zero_of(load.dtype))
            return value
        if block.predicate is None and is_function_of_element(block, self._store):
            if self._is_kept and not self._is_constant:
                raise self._not_computed_error(
                    load, needs=f"the point that computes {text_of(load)} is known"
                )
            indices = dict(zip(self._store.indices, load.indices, strict=True))
            return substitute_subexprs(self._store.value, indices)
        raise schedule_error(
            f"{self._cursor.primitive}.not_proved",
            f"It is not known at which point block '{block.name}' computes {text_of(load)}.",
            needs=f"the indices of {text_of(load)} equal those of the block's store at exactly one point of "
            "the block",
        )

    def _not_computed_error(self, load: Load, *, needs: str) -> ScheduleError:
        """Return the error for a load of a value that may be stale (from an earlier iteration)."""
        return schedule_error(
            f"{self._cursor.primitive}.not_proved",
            f"Cannot prove that block '{self._cursor.node.name}' computes {text_of(load)} each time "
            "that it runs, so the element may be left from an earlier iteration of a loop around the block.",
            needs=needs,
            hint=f"Allocate '{self._store.buffer}' in that loop.",
        )

    def _unproved_conditions(self, point: dict[str, Expr]) -> Iterator[Expr]:
        """Yield the unproved conditions under which the block computes the element of a point."""
        for part in visit_conditions(self._cursor.node, point):
            if not self._point.proves(part):
                yield part
