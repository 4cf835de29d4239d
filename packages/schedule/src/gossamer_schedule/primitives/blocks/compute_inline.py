"""`compute_inline`: inline a producer block into the blocks that read its elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import index_var, zero_of
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import (
    Block,
    Combine,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Load,
    Stmt,
    Store,
    Unary,
    While,
)
from gossamer_ir.traversal.effects import NAMING, outer_writes
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.bounds.function_point import point_in_function
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor import Cursor, function_with_replaced
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.resolve import find_block, find_buffer
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.dependence.access import buffers_accessed, is_vector_access
from gossamer_schedule.errors import quoted, schedule_error, text_of
from gossamer_schedule.motion.inline import (
    own_nest,
    require_only_iterators,
    required_assignment,
    required_writer,
    visit_conditions,
    without_block,
    without_buffer,
)
from gossamer_schedule.motion.kept_values import is_constant_in_function, may_keep_values
from gossamer_schedule.nests.block_nest import loop_nest
from gossamer_schedule.nests.coverage import require_covered
from gossamer_schedule.regions.iterator_dimensions import determined_iterators
from gossamer_schedule.regions.match_indices import match_all
from gossamer_schedule.regions.required import is_function_of_element, with_replaced_subexpressions


@primitive(stages=LOOP_STAGES)
def compute_inline(root: Cursor, block: str, *, function: str | None = None) -> Change:
    """Replace each load of a block's result by the expression that the block stores, and remove the block.

    The buffer of the result is removed, too. If it cannot be proved that the block computes a loaded element,
    the expression is guarded by the conditions under which it does. Elsewhere the load had no defined
    value, and it is replaced by 0. If the buffer is allocated outside a loop in which the block runs again,
    the element may have a value from an earlier iteration, so the proof is required there.

    Elements that are never loaded are no longer computed. A program that stopped only because computing
    such an element read out of bounds therefore no longer stops.

    Raises `ScheduleError` with a code `schedule.compute_inline.*`:

    * `.form`: the block is not a single assignment
    * `.parameter`: it writes a parameter
    * `.writers`: another statement also writes the buffer
    * `.predicate`: the block uses variables of its loops, not only its iterators
    * `.changed`: a buffer that it reads is written later
    * `.other_access`: the buffer is searched, prefetched, read in vectors, or used elsewhere than after the
      block
    * `.not_proved`: the loops may not visit a whole domain, the point that computes a loaded element is not
      known, or the element may be left from an earlier iteration

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_schedule.primitives.buffers.cache_read import cache_read
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_read(GATHER, "gather", buffer="P", scope="local").module
    >>> print(body_text(cached))
    for i_c in T.serial(n):
        with T.block("gather_P_local"):
            vi_c = T.axis.spatial(n, i_c)
            P_local[vi_c] = P[vi_c]
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P_local[vi]]
    >>> print(body_text(compute_inline(cached, "gather_P_local").module))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    """
    cursor = find_block(root, block=block)

    store = required_assignment(cursor)
    require_allocated(find_buffer(root, buffer=store.buffer), root)
    required_writer(root, store.buffer)
    require_only_iterators(cursor)
    require_covered(loop_nest(cursor), cursor.node.iters)
    without = without_block(cursor)
    _require_only_loads(without, store)
    _require_uses_after(cursor, store)
    _require_unchanged_inputs(cursor)

    inlined = replace(without, body=_LoadInliner(cursor, store).body(without.body))
    return Change(root.with_function(without_buffer(inlined, store.buffer)), ())


def _require_unchanged_inputs(cursor: Cursor) -> None:
    """Refuse a block if a buffer that it reads is written later, since it is then read later."""
    nest = own_nest(cursor)
    changed = buffers_accessed((cursor.node,)) & outer_writes(nest.siblings[nest.index + 1 :])
    if changed:
        raise schedule_error(
            "compute_inline.changed",
            f"Block '{cursor.node.name}' reads {quoted(changed)}, which may be written before the result of "
            "the block is used.",
        )


def _require_only_loads(function: Function, store: Store) -> None:
    """Refuse accesses of the buffer that an expression cannot replace."""
    for node in collect(NAMING, *function.body):
        if node.buffer == store.buffer and not isinstance(node, (Load, Store)):
            raise schedule_error(
                "compute_inline.other_access",
                f"Buffer '{store.buffer}' is searched, prefetched or guarded, and an expression can only "
                "replace loads.",
            )
    for load in collect(Load, *function.body):
        if load.buffer == store.buffer and (
            load.predicate is not None or is_vector_access(load.indices)
        ):
            raise schedule_error(
                "compute_inline.other_access",
                f"Buffer '{store.buffer}' is loaded in vectors or under a predicate, and the block computes "
                "one element at a time.",
            )


def _require_uses_after(cursor: Cursor, store: Store) -> None:
    """Refuse uses of the buffer that do not follow the block in the same body, each time that it runs."""
    nest = own_nest(cursor)
    parent, name, index = nest.path[-1]
    before = replace(parent, **{name: getattr(parent, name)[:index]})
    above = function_with_replaced(nest.up(1), (before,)) if len(nest.path) > 1 else before
    if store.buffer in buffers_accessed(above.body):
        raise schedule_error(
            "compute_inline.other_access",
            f"Buffer '{store.buffer}' is also used before block '{cursor.node.name}' or outside the "
            "enclosing body.",
        )


class _LoadInliner:
    """Replaces loads of a buffer, and tracks the conditions that hold at each statement."""

    def __init__(self, cursor: Cursor, store: Store) -> None:
        self._cursor, self._store = cursor, store
        self._point = point_in_function(cursor.function)
        # The block may run again before its buffer is allocated anew.
        self._is_kept = may_keep_values(own_nest(cursor), store.buffer)
        by_element = with_replaced_subexpressions(
            store.value, {at: index_var("") for at in store.indices}
        )
        self._is_constant = is_constant_in_function(by_element, cursor.function)
        iters = {item.var for item in cursor.node.iters}
        self._is_determined = iters <= determined_iterators(cursor, store)

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self._statement(stmt) for stmt in body)

    def _statement(self, stmt: Any) -> Any:
        if self._store.buffer not in buffers_accessed((stmt,)):
            return stmt
        with self._point.scope():
            return self._changed(stmt)

    def _changed(self, stmt: Any) -> Any:
        match stmt:
            case For():
                header = self._expressions(replace(stmt, body=()))
                self._point.assume_loop(stmt)
                return replace(header, body=self.body(stmt.body))
            case While():
                condition = self._expr(stmt.condition)
                return While(condition, self.body(stmt.body))
            case If():
                return self._branch(stmt)
            case Block():
                return self._block(stmt)
            case Combine():
                return replace(stmt, stores=self.body(stmt.stores))
        return self._expressions(stmt)

    def _branch(self, stmt: If) -> If:
        condition = self._expr(stmt.condition)
        with self._point.scope():
            self._point.assume(stmt.condition)
            then_body = self.body(stmt.then_body)
        self._point.assume(Unary("not", stmt.condition))
        return If(condition, then_body, self.body(stmt.else_body))

    def _block(self, block: Block) -> Block:
        header = self._expressions(replace(block, body=(), init=(), reads=None, writes=None))
        for item in block.iters:
            if item.kind == "S":
                self._point.assume_iterator(item)
        init = self.body(block.init)
        for item in block.iters:
            self._point.assume_iterator(item)
        if block.predicate is not None:
            self._point.assume(block.predicate)
        changed: Block = replace(header, init=init, body=self.body(block.body))
        return changed

    def _expressions(self, node: Any) -> Any:
        return map_children(node, self._expr)

    def _expr(self, expr: Any) -> Any:
        """Return an expression with loads replaced, innermost first."""
        inner = map_children(expr, self._expr)
        if isinstance(inner, Load) and inner.buffer == self._store.buffer:
            return self._value(inner)
        return inner

    def _value(self, load: Load) -> Expr:
        block: Block = self._cursor.node
        free = {item.var for item in block.iters}
        point = match_all(self._store.indices, load.indices, free=free)
        if self._is_determined and point is not None:
            unproved = list(self._unproved(point))
            if unproved and self._is_kept:
                raise self._not_computed_error(load, needs=" and ".join(map(text_of, unproved)))
            value: Expr = substitute(self._store.value, point)
            for condition in reversed(unproved):
                value = IfThenElse(condition, value, zero_of(load.dtype))
            return value
        if block.predicate is None and is_function_of_element(block, self._store):
            if self._is_kept and not self._is_constant:
                raise self._not_computed_error(
                    load, needs=f"the point that computes {text_of(load)} is known"
                )
            indices = dict(zip(self._store.indices, load.indices, strict=True))
            return with_replaced_subexpressions(self._store.value, indices)
        raise schedule_error(
            "compute_inline.not_proved",
            f"It is not known at which point block '{block.name}' computes {text_of(load)}.",
            needs=f"the indices of {text_of(load)} equal those of the block's store at exactly one point of "
            "the block",
        )

    def _not_computed_error(self, load: Load, *, needs: str) -> ScheduleError:
        """Return the error for a load of a value that may be stale (from an earlier iteration)."""
        return schedule_error(
            "compute_inline.not_proved",
            f"Cannot prove that block '{self._cursor.node.name}' computes {text_of(load)} each time "
            "that it runs, so the element may be left from an earlier iteration of a loop around the block.",
            needs=needs,
            hint=f"Allocate '{self._store.buffer}' in that loop.",
        )

    def _unproved(self, point: dict[str, Expr]) -> Iterator[Expr]:
        """Yield the unproved conditions under which the block computes the element of a point."""
        for part in visit_conditions(self._cursor.node, point):
            if not self._point.proves(part):
                yield part
