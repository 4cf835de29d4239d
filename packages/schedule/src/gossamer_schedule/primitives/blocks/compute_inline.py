"""`compute_inline`: what a block computes is computed where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import index_var, zero_of
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    Block,
    Combine,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Load,
    Module,
    Stmt,
    Store,
    Unary,
    While,
)
from gossamer_ir.traversal.effects import NAMING, outer_writes
from gossamer_ir.traversal.walk import collect, map_children, substitute
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor import Cursor, replaced
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    require_stage,
)
from gossamer_schedule.dependence.access import is_wide, mentioned
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.motion.inline import (
    conditions_at,
    own_nest,
    require_no_loops,
    required_assignment,
    required_writer,
    without_block,
    without_buffer,
)
from gossamer_schedule.motion.kept_values import is_kept, is_lasting
from gossamer_schedule.motion.move_block import position
from gossamer_schedule.nests.block_nest import loop_nest
from gossamer_schedule.nests.coverage import require_covered
from gossamer_schedule.regions.iterator_dimensions import determined_by
from gossamer_schedule.regions.match_indices import match_all
from gossamer_schedule.regions.required import is_function_of_element, with_parts
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "compute_inline"


@primitive
def compute_inline(module: Module, block: str, *, function: str | None = None) -> Result:
    """Replaces each load of what a block makes by the expression that the block stores, and removes the
    block and its buffer.

    Where it is not proved that the block makes the element that is loaded, the expression is evaluated
    only where it does: elsewhere the load had no defined value. It may have one where the block runs
    again in a loop outside of which the buffer is allocated, so there it must be proved. What nobody reads
    is not computed: where only that stops the program, by a read out of bounds, it goes on.

    Raises `ScheduleError`: `schedule.compute_inline.form` (the block is not one assignment),
    `.parameter` (it writes a parameter), `.writers` (something else writes the buffer, too),
    `.predicate` (the block uses its loops other than by iterators), `.changed` (what it reads is written
    later), `.other_access` (the buffer is searched, prefetched, read in vectors, or not only used behind
    the block in the same body), `.not_proved` (the loops may not visit the whole domain of an iterator,
    it is not known which point made the element of a load, or the element may be left from an earlier
    iteration of a loop), `.no_block`, `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)

    store = required_assignment(cursor)
    require_allocated(find_buffer(root, buffer=store.buffer), root)
    required_writer(root, store.buffer)
    require_no_loops(cursor)
    require_covered(loop_nest(cursor), cursor.node.iters)
    bare = without_block(cursor)
    _require_only_loads(bare, store)
    _require_behind(cursor, store)
    _require_lasting(cursor)

    inlined = replace(bare, body=_Inlining(cursor, store).body(bare.body))
    rewritten = root.with_function(without_buffer(inlined, store.buffer)).module

    taken = step(block=block, function=function)
    return Result(rewritten, (), Step(_NAME, taken))


def _require_lasting(cursor: Cursor) -> None:
    """What the block reads must be the same wherever it is computed instead."""
    nest = own_nest(cursor)
    changed = mentioned((cursor.node,)) & outer_writes(nest.siblings[position(nest) + 1 :])
    if changed:
        raise schedule_error(
            f"{_NAME}.changed",
            f"What block '{cursor.node.name}' reads of {', '.join(sorted(changed))} may be written before "
            "what it makes is used.",
        )


def _require_only_loads(function: Function, store: Store) -> None:
    for node in collect(NAMING, *function.body):
        if node.buffer == store.buffer and not isinstance(node, (Load, Store)):
            raise schedule_error(
                f"{_NAME}.other_access",
                f"Buffer '{store.buffer}' is searched, prefetched or guarded, which an expression cannot "
                "be.",
            )
    for load in collect(Load, *function.body):
        if load.buffer == store.buffer and (load.predicate is not None or is_wide(load.indices)):
            raise schedule_error(
                f"{_NAME}.other_access",
                f"Buffer '{store.buffer}' is read in vectors, or under a mask, and the block makes one "
                "element at a time.",
            )


def _require_behind(cursor: Cursor, store: Store) -> None:
    """What the block makes may only be used behind it, each time that it runs."""
    nest = own_nest(cursor)
    parent, name, index = nest.path[-1]
    before = replace(parent, **{name: getattr(parent, name)[:index]})
    above = replaced(nest.up(1), (before,)) if len(nest.path) > 1 else before
    if store.buffer in mentioned(above.body):
        raise schedule_error(
            f"{_NAME}.other_access",
            f"Buffer '{store.buffer}' is not only used behind block '{cursor.node.name}', in the same body.",
        )


class _Inlining:
    """Rewrites statements, knowing what holds where each stands."""

    def __init__(self, cursor: Cursor, store: Store) -> None:
        self._site, self._store = cursor, store
        self._point = point_in(cursor.function)
        self._is_kept = is_kept(own_nest(cursor), store.buffer)
        named = with_parts(store.value, {at: index_var("") for at in store.indices})
        self._is_lasting = is_lasting(named, cursor.function)
        own = {item.var for item in cursor.node.iters}
        self._is_determined = own <= determined_by(cursor, store)

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(self._statement(stmt) for stmt in body)

    def _statement(self, stmt: Any) -> Any:
        if self._store.buffer not in mentioned((stmt,)):
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
        """An expression, loads replaced from the inside out."""
        inner = map_children(expr, self._expr)
        if isinstance(inner, Load) and inner.buffer == self._store.buffer:
            return self._value(inner)
        return inner

    def _value(self, load: Load) -> Expr:
        iters = self._site.node.iters
        free = {item.var for item in iters}
        point = match_all(self._store.indices, load.indices, free=free)
        if self._is_determined and point is not None:
            unproved = list(self._unproved(point))
            if unproved and self._is_kept:
                raise self._not_made(load, needs=" and ".join(map(text_of, unproved)))
            value: Expr = substitute(self._store.value, point)
            for condition in reversed(unproved):
                value = IfThenElse(condition, value, zero_of(load.dtype))
            return value
        if self._site.node.predicate is None and is_function_of_element(
            self._site.node, self._store
        ):
            if self._is_kept and not self._is_lasting:
                raise self._not_made(load, needs=f"the point that makes {text_of(load)} is known")
            places = dict(zip(self._store.indices, load.indices, strict=True))
            return with_parts(self._store.value, places)
        raise schedule_error(
            f"{_NAME}.not_proved",
            f"It is not known at which point block '{self._site.node.name}' makes {text_of(load)}.",
            needs=f"{text_of(load)} is {self._store.buffer} at the indices of the block's store for some "
            "values of its iterators, others for each point",
        )

    def _not_made(self, load: Load, *, needs: str) -> Exception:
        """An element that is not made again in a loop may be left from an earlier iteration."""
        return schedule_error(
            f"{_NAME}.not_proved",
            f"It is not proved that block '{self._site.node.name}' makes {text_of(load)} each time that it "
            "runs, so the element may be left from an earlier iteration of a loop around the block.",
            needs=needs,
            hint=f"Allocate '{self._store.buffer}' in that loop.",
        )

    def _unproved(self, point: dict[str, Expr]) -> Iterator[Expr]:
        """The conditions under which the block makes the element of a point, but for those that hold."""
        for part in conditions_at(self._site.node, point):
            if not self._point.proves(part):
                yield part
