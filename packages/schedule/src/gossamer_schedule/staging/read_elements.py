"""The elements of a buffer that a block reads, and the statements that copy them before its nest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec

from gossamer_ir.core.axis_kinds import is_varied
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.nodes import AnyBuffer, Block, BlockIter, Expr, If, Load, SparseBuffer, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.covered_elements import require_covered
from gossamer_schedule.nests.block_nest import BlockNest, loop_nest
from gossamer_schedule.nests.copy_nest import IterationDomain
from gossamer_schedule.nests.existence_conditions import existence_conditions
from gossamer_schedule.predicates.block_predicates import is_bound_of
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe
from gossamer_schedule.staging.cache_checks import (
    require_allocated_outside,
    require_invariant_selectors,
    selecting_iters,
)
from gossamer_schedule.staging.loads import ConditionalLoad, loads_of
from gossamer_support.items_by_name import items_by_name


class ReadElements(msgspec.Struct, frozen=True):
    """The elements of a buffer that a block reads at some points."""

    reads: tuple[ConditionalLoad, ...]
    points: IterationDomain


def required_elements(cursor: Cursor[Block], buffer_name: str) -> ReadElements:
    """Return the elements that the body of a block reads, if all of them may be read before its nest.

    Raises `.inner`, `.loads`, `.written`, `.domain` and `.not_proved`.
    """
    require_loads(loop_nest(cursor), buffer_name)
    return elements_of(cursor, buffer_name, loads_of(cursor, buffer_name))


def elements_of(
    cursor: Cursor[Block], buffer_name: str, reads: tuple[ConditionalLoad, ...]
) -> ReadElements:
    """Return the elements of given reads in the body of a block, if all may be read before its nest.

    Raises `.domain` and `.not_proved`.
    """
    nest = loop_nest(cursor)
    block = cursor.node
    conditions = tuple(
        part
        for part in conjuncts(block.predicate)
        if not any(is_bound_of(part, iterator) for iterator in block.iters)
    )
    iters = selecting_iters(block, _selecting_exprs(reads))
    available = {iterator.var for iterator in iters} | nest.known_above
    selecting = tuple(part for part in conditions if free_vars(part) <= available)
    elements = ReadElements(reads, _domain(nest, iters, selecting))
    # These iterators may select more elements than the block reads: the conditions on others are dropped.
    # If one of them may be out of bounds, exactly the points of the block are visited.
    if not is_safely_read(cursor, elements, buffer_name=buffer_name):
        elements = ReadElements(reads, _domain(nest, block.iters, conditions))
        require_covered(cursor, block.iters, loops=nest.loops)
    points = elements.points
    selectors = (*_selecting_exprs(reads), *points.conditions, *chain(*points.existence.values()))
    require_invariant_selectors(nest, points.iters, selectors)
    return elements


def _domain(
    nest: BlockNest, iters: tuple[BlockIter, ...], conditions: tuple[Expr, ...]
) -> IterationDomain:
    return IterationDomain(iters, conditions, existence=existence_conditions(nest, iters))


def require_loads(nest: BlockNest, buffer_name: str) -> None:
    """Refuse a block whose body does not load from a buffer, or whose nest changes the buffer.

    Raises `.inner`, `.loads`, `.domain` and `.written`.
    """
    require_allocated_outside(nest, buffer_name)
    cursor = nest.block
    if not loads_of(cursor, buffer_name):
        raise schedule_error(
            f"{cursor.primitive}.loads",
            f"The body of block '{cursor.node.name}' does not load from '{buffer_name}'.",
        )
    inside = (stmt for stmt in addressable_stmts(cursor.node.body) if isinstance(stmt, Block))
    if any(
        buffer_name in buffers_accessed(*[iterator.domain for iterator in block.iters])
        for block in inside
    ):
        raise schedule_error(
            f"{cursor.primitive}.domain",
            f"A block inside block '{cursor.node.name}' loads the domain of an iterator from "
            f"'{buffer_name}'.",
        )
    if buffer_name in buffers_written((nest.top.node,)):
        raise schedule_error(
            f"{cursor.primitive}.written",
            f"The nest of block '{cursor.node.name}' writes '{buffer_name}', and copies made "
            "before it would be "
            "outdated.",
        )


def _selecting_exprs(reads: Sequence[ConditionalLoad]) -> tuple[Expr, ...]:
    """Return the expressions that determine which elements are read."""
    conditions = (read.condition for read in reads if read.condition is not None)
    return (*(at for read in reads for at in read.indices), *conditions)


def is_safely_read(cursor: Cursor[object], elements: ReadElements, *, buffer_name: str) -> bool:
    """Return whether all elements are proved in bounds at all points of the iterators."""
    return all(
        are_loads_safe(
            cursor.function,
            (Load(buffer_name, read.indices, read.dtype),),
            iters=elements.points.iters,
            conditions=(*elements.points.conditions, *_conditions_of(read)),
        )
        for read in elements.reads
    )


def require_stored(
    cursor: Cursor[object], old: AnyBuffer, elements: ReadElements, *, hint: str = ""
) -> None:
    """Refuse reads beyond the end of a varied fiber: they give the fill value, which a copy cannot store.

    Raises `.not_proved`.
    """
    # Other buffers have no fill value: reading them out of bounds is an error.
    if not isinstance(old, SparseBuffer):
        return
    axes = items_by_name(cursor.function.axes)
    if not any(is_varied(axes[name]) for name in old.axes):
        return
    if not is_safely_read(cursor, elements, buffer_name=old.name):
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"Elements of buffer '{old.name}' that are read may lie beyond their fibers, where a copy "
            "cannot store them.",
            needs="each position lies in its fiber",
            hint=hint,
        )


def _conditions_of(read: ConditionalLoad) -> tuple[Expr, ...]:
    return () if read.condition is None else (read.condition,)


def copy_stmts(
    elements: ReadElements, buffer_name: str, *, to: str, cache_indices: Sequence[tuple[Expr, ...]]
) -> tuple[Stmt, ...]:
    """Return the statements that copy the elements of one point into a cache, at `cache_indices`."""
    return tuple(
        _conditional_store(read, Store(to, indices, Load(buffer_name, read.indices, read.dtype)))
        for read, indices in zip(elements.reads, cache_indices, strict=True)
    )


def _conditional_store(read: ConditionalLoad, store: Store) -> Stmt:
    return store if read.condition is None else If(read.condition, (store,))
