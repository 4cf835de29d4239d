"""Coverage: proofs that the loops around a block visit all values of its iterators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import loops_outside_init
from gossamer_ir.analysis.accesses.linear_form import form_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.arith.affine import affine_of, expr_of, product_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.dependence.mixed_radix import (
    count_of_values,
    digits_of,
    is_covering,
    is_positive,
    lowest_loops,
)
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, BlockIter, For, Range
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error, text_of


def require_covered(
    block: Cursor[Block], iters: Sequence[BlockIter], *, loops: Sequence[For]
) -> None:
    """Refuse a block unless the loops of its nest visit all combinations of values of some of its iterators.

    Loops that feed none of the iterators must have an iteration if the init of the block needs them.

    Raises `.not_proved`.
    """
    for iterator, tile in _visited_ranges(block, iters, nest=loops):
        if tile is not None:
            raise _coverage_error(block, iterator)


def required_tiles(
    block: Cursor[Block], iters: Sequence[BlockIter], *, loops: Sequence[For]
) -> dict[str, Range]:
    """Return, for each iterator of which the loops do not visit the whole domain, the range that they do.

    The range starts at a value that is bound around the nest. Otherwise as `require_covered`.

    Raises `.not_proved`.
    """
    visited = _visited_ranges(block, iters, nest=loops)
    return {iterator.var: tile for iterator, tile in visited if tile is not None}


def _visited_ranges(
    block: Cursor[Block], iters: Sequence[BlockIter], *, nest: Sequence[For]
) -> Iterator[tuple[BlockIter, Range | None]]:
    """Yield each iterator with the range of its domain that the loops visit, None for all of it."""
    outer = values_at(block)
    inside = {loop.var: replace(loop, extent=resolve(loop.extent, outer)) for loop in nest}
    loops = {**loops_of(block.function), **inside}
    values = outer | {iterator.var: iterator.value for iterator in block.node.iters}
    idle = {loop.var for loop in nest if (integer_value(loop.extent) or 0) < 1}
    # Loops that do not run for the init cannot keep it from running.
    idle -= loops_outside_init(enclosed_block(block))
    free = {loop.var for loop in nest}
    for iterator in iters:
        form = form_of(iterator.value, outer, loops=loops)
        extent = resolve(iterator.domain.extent, values)
        used, tile = set(form.terms), None
        if not is_covering(form, extent, loops=loops) or used - free:
            used, tile = used & inside.keys(), _visited_tile(iterator, nest)
            if tile is None or used - free:
                raise _coverage_error(block, iterator)
        yield iterator, tile
        # A loop may feed one iterator only: i in both dimensions visits a diagonal.
        free -= used
        idle -= used
    if idle:
        raise schedule_error(
            f"{block.primitive}.not_proved",
            f"Cannot prove that loop '{min(idle)}' around block '{block.node.name}', which selects no "
            "element, has an iteration.",
            needs=f"{text_of(loops[min(idle)].extent)} >= 1",
        )


def _visited_tile(iterator: BlockIter, nest: Sequence[For]) -> Range | None:
    """Return the contiguous range of values of an iterator that the loops of a nest visit."""
    loops = {loop.var: loop for loop in nest}
    form = form_of(iterator.value, {}, loops=loops)
    order = lowest_loops(form, loops.keys(), loops=loops)
    if order is None:
        return None
    # An inner loop without iterations would leave the outer values without a point.
    if not all(is_positive(affine_of(loops[name].extent)) for name in order[:-1]):
        return None
    count = count_of_values(digits_of(form, loops.keys(), loops=loops).values())
    tile = Range(expr_of(form.base), product_of(count))
    return tile if free_vars(tile).isdisjoint(loops) else None


def _coverage_error(block: Cursor[Block], iterator: BlockIter) -> ScheduleError:
    outer = values_at(block)
    values = outer | {iterator.var: iterator.value for iterator in block.node.iters}
    return schedule_error(
        f"{block.primitive}.not_proved",
        f"Cannot prove that the loops around block '{block.node.name}' visit the whole domain of "
        f"'{iterator.var}'.",
        needs=f"{text_of(resolve(iterator.value, outer))} takes each value from 0 to before "
        f"{text_of(resolve(iterator.domain.extent, values))}, whatever the other iterators are",
    )
