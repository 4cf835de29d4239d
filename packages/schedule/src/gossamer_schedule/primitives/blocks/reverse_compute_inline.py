"""`reverse_compute_inline`: inline a consumer block into the block that produces what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.core.conditions import conjunction, conjuncts, short_circuit_conjunction
from gossamer_ir.nodes import Block, Expr, Function, Load, Store, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_named
from gossamer_ir.traversal.substitute import substitute, substitute_subexprs
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.program_points import point_in_block
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.used_buffers import conflicting_buffers
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.legality.covered_elements import require_covered
from gossamer_schedule.legality.distinct_stores import require_distinct_stores
from gossamer_schedule.motion.inline import (
    domain_conditions,
    require_only_iters,
    required_assignment,
    required_writer,
    without_block,
    without_buffer,
)
from gossamer_schedule.motion.kept_values import is_computed_for, may_keep_values
from gossamer_schedule.motion.move_block import require_bound_before
from gossamer_schedule.nests.block_nest import loop_nest


@primitive(stages=LOOP_STAGES)
def reverse_compute_inline(
    root: Cursor[Function], block: str, *, function: str | None = None
) -> Change:
    """Inline a consumer block into the block that produces what it reads, and remove the consumer.

    The producer then stores the result of the consumer. The buffer between the blocks is removed, too. The
    consumer reads one element of this buffer, that of its iterators, as in `X[vi, vj]`; the function
    allocates the buffer, and nothing else reads it. For each element the consumer stores to a different
    one. If the producer may compute more elements than the consumer reads, its predicate excludes them.

    Raises `ScheduleError` with a code `schedule.reverse_compute_inline.*`:

    * `.form`: a block is not a single assignment
    * `.element`: the block does not read one element, that of its iterators, of an allocated buffer
    * `.writers`: the buffer is not written by exactly one block
    * `.other_access`: the buffer is used elsewhere, or a statement in between conflicts with the block
    * `.predicate`: the block uses variables of its loops, not only its iterators
    * `.scope`: it is not in a nest of its own after the producer's, or uses a name that is bound in between
    * `.kind`: a loop around the producer is vectorized, and the producer would get a condition
    * `.not_proved`: the loops may not visit a whole domain, two points may store to one element, or an
      element may be left from an earlier iteration

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.buffers.cache_write import cache_write
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_write(SCALE, "scale", buffer="Y", scope="local").module
    >>> print(body_text(cached))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y_local[vi] = X[vi] * 2.0
    for i_c in T.serial(n):
        with T.block("scale_Y_local"):
            vi_c = T.axis.spatial(n, i_c)
            Y[vi_c] = Y_local[vi_c]
    >>> print(body_text(reverse_compute_inline(cached, "scale_Y_local").module))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    """
    cursor = find_block(root, block=block)

    store = required_assignment(cursor)
    load = _required_own_load(cursor, store)
    producer = required_writer(root, load.buffer)
    produced = required_assignment(producer)
    _require_no_conflict(cursor, producer, between=load.buffer)
    require_bound_before(cursor.up(len(cursor.nest)), producer.up(len(producer.nest)))
    require_only_iters(cursor)
    require_covered(cursor, cursor.node.iters, loops=loop_nest(cursor).loops)
    require_distinct_stores(cursor, store.buffer)
    if _depends_on_value(cursor, store, load):
        require_distinct_stores(producer, load.buffer)
    _require_produced(cursor, producer, load, produced=produced)

    fused = _fused_producer(cursor, producer, store, load, produced=produced)
    without = without_block(find_block(producer.replace_with((fused,)), block=block))
    return Change(root.with_function(without_buffer(without, load.buffer)), ())


# Other expressions: refused.
def _required_own_load(cursor: Cursor[Block], store: Store) -> Load:
    """Return the only load from an allocated buffer that the block indexes by all of its iterators."""
    allocated = {buffer.name for buffer in all_buffers(cursor.function) if buffer.handle is None}
    block = cursor.node
    all_loads = [load for load in collect(Load, block) if load.buffer in allocated]
    loads = {load for load in collect(Load, store) if load.buffer in allocated}
    iterator_vars = sorted(iterator.var for iterator in block.iters)
    for load in loads:
        names = sorted(at.name for at in load.indices if isinstance(at, Var))
        is_same = all(other == load for other in all_loads if other.buffer == load.buffer)
        if names == iterator_vars and len(load.indices) == len(iterator_vars) and is_same:
            return load
    raise schedule_error(
        "reverse_compute_inline.element",
        f"Block '{block.name}' does not read exactly one element, that of its iterators, of a buffer that "
        "the function allocates.",
    )


def _require_no_conflict(cursor: Cursor[Block], producer: Cursor[Block], *, between: str) -> None:
    """Refuse a block that is not in a nest of its own after that of the producer, or conflicts in between.

    No other statement may use the buffer `between` the blocks.
    """
    moving, top = cursor.up(len(cursor.nest)), producer.up(len(producer.nest))
    if not top.precedes(moving) or any(len(loop.body) != 1 for loop in cursor.nest):
        raise schedule_error(
            "reverse_compute_inline.scope",
            f"Block '{cursor.node.name}' is not in a nest of its own after that of block "
            f"'{producer.node.name}'.",
            place=cursor.place,
        )
    passed = (top.node, *top.siblings_until(moving))
    others = buffers_named(
        *without_block(find_block(producer.replace_with(()), block=cursor.node.name)).body
    )
    conflicts = (conflicting_buffers((moving.node,), passed) - {between}) | ({between} & others)
    if conflicts:
        raise schedule_error(
            "reverse_compute_inline.other_access",
            f"Block '{cursor.node.name}' cannot be computed in block '{producer.node.name}' because of other "
            f"uses of {quote(conflicts)}.",
        )


def _depends_on_value(cursor: Cursor[Block], store: Store, load: Load) -> bool:
    """Return whether the loaded value determines if and where the block stores, or what else it reads.

    The producer must then store each element only once: the consumer never sees values that are overwritten
    before it runs.
    """
    selectors = [*conjuncts(cursor.node.predicate), *store.indices]
    selectors += [read for read in collect(READS, store.value) if read != load]
    return bool(collect(Load, *selectors)) and load.buffer in buffers_accessed(*selectors)


def _require_produced(
    cursor: Cursor[Block], producer: Cursor[Block], load: Load, *, produced: Store
) -> None:
    """Refuse loads of elements that may be left from an earlier iteration of a loop around both blocks."""
    if not may_keep_values(producer.up(len(producer.nest)), load.buffer):
        return
    require_covered(producer, producer.node.iters, loops=loop_nest(producer).loops)
    if not is_computed_for(cursor, load, producer, produced):
        raise schedule_error(
            "reverse_compute_inline.not_proved",
            f"Cannot prove that block '{producer.node.name}' computes all elements of '{load.buffer}' "
            f"that block '{cursor.node.name}' reads each time that it runs, so an element may be left from "
            "an earlier iteration of a loop around both.",
            needs=f"each point of '{cursor.node.name}' is also a point of '{producer.node.name}'",
            hint=f"Allocate '{load.buffer}' in that loop.",
        )


def _fused_producer(
    cursor: Cursor[Block], producer: Cursor[Block], store: Store, load: Load, *, produced: Store
) -> Block:
    """Return the producer, which stores the result of the consumer instead of its own."""
    iters = [at.name for at in load.indices if isinstance(at, Var)]
    point = dict(zip(iters, produced.indices, strict=True))
    inlined = _store_at_point(store, load, value=produced.value, point=point)
    # The consumer may run at fewer points than the producer: its conditions go with its store.
    conditions = list(
        _unproved_conditions(cursor, producer, load, value=produced.value, point=point)
    )
    _require_no_vectorized_loop(producer, conditions)
    block = producer.node
    predicate = _extended_predicate(block, conditions)
    # Declared regions are those of the old store; without them, they follow from the body.
    return replace(block, body=(inlined,), predicate=predicate, reads=None, writes=None)


def _store_at_point(store: Store, load: Load, *, value: Expr, point: Mapping[str, Expr]) -> Store:
    """Return the consumer's store at a point, with the load replaced by the produced value."""
    return replace(
        store,
        indices=tuple(_expr_at_point(at, load, value=value, point=point) for at in store.indices),
        value=_expr_at_point(store.value, load, value=value, point=point),
    )


def _expr_at_point(expr: Expr, load: Load, *, value: Expr, point: Mapping[str, Expr]) -> Expr:
    at_point: Expr = substitute(substitute_subexprs(expr, {load: value}), point)
    return at_point


def _unproved_conditions(
    cursor: Cursor[Block],
    producer: Cursor[Block],
    load: Load,
    *,
    value: Expr,
    point: Mapping[str, Expr],
) -> Iterator[Expr]:
    """Yield the unproved conditions under which the consumer reads the element that a point produces."""
    producer_point = point_in_block(producer)
    parts = [
        part
        for iterator in cursor.node.iters
        for part in domain_conditions(iterator, point[iterator.var], point)
    ]
    for part in conjuncts(cursor.node.predicate):
        parts.append(_expr_at_point(part, load, value=value, point=point))
    for part in parts:
        if not producer_point.proves(part):
            yield part


def _require_no_vectorized_loop(producer: Cursor[Block], conditions: Sequence[Expr]) -> None:
    """Refuse new conditions in a vectorized loop: they are not the predicate of its lanes."""
    for loop in producer.loops:
        if conditions and loop.kind == "vectorized":
            raise schedule_error(
                "reverse_compute_inline.kind",
                f"Loop '{loop.var}' around block '{producer.node.name}' is vectorized, and the block would "
                "get conditions besides the predicate of its lanes.",
                hint=f"Apply reverse_compute_inline before '{loop.var}' is made vectorized.",
            )


def _extended_predicate(block: Block, conditions: Sequence[Expr]) -> Expr | None:
    """Return the conjunction of the conditions of a block and new ones.

    New conditions that read buffers are evaluated only where the others hold, since elsewhere the elements
    that they read may not exist.
    """
    parts = (*conjuncts(block.predicate), *conditions)
    if buffers_accessed(*conditions):
        return short_circuit_conjunction(*parts)
    return conjunction(*parts)
