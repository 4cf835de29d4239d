"""The ranges of a consumer's iterators that one iteration of a loop produces.

They follow from all buffers that the consumer reads and the loop writes, and must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.dependence.access_forms import AccessForm
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import Block, BlockIter, For
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.regions.indirect_ranges import indirect_ranges
from gossamer_schedule.regions.produced import (
    ProducedRange,
    iterator_indexed_dimensions,
    produced_range,
    producer_forms,
)


class ConsumerMove(msgspec.Struct, frozen=True):
    """The move of a block, with the loops around it, into a loop of the nest whose loops are `path`."""

    block: Cursor[Block]
    loops: tuple[For, ...]
    target: Cursor[For]
    path: tuple[For, ...]


def required_consumer_ranges(
    move: ConsumerMove, produced: Mapping[str, list[AccessForm]]
) -> dict[str, ProducedRange]:
    """Return the range of each iterator of the block that one iteration of the loop produces."""
    ranges: dict[str, ProducedRange] = {}
    for buffer, stores in produced.items():
        extended = _extended_ranges(move, buffer, stores, known_ranges=ranges)
        if extended is None:
            raise _ranges_error(move)
        ranges = extended
    if not _keeps_order_of_terms(move, ranges):
        raise _ranges_error(move)
    return ranges


def _keeps_order_of_terms(move: ConsumerMove, ranges: Mapping[str, ProducedRange]) -> bool:
    """Return whether the moved block combines the same terms of each element, in the same order.

    Without an init, a block may continue its reduction in each iteration of one loop of the path. The loop
    must replace the outermost loop of the reduction. An init would run again in each iteration.
    """
    reduced = [iterator for iterator in move.block.node.iters if iterator.kind == "R"]
    cut = {
        iterator.value: ranges[iterator.var]
        for iterator in reduced
        if _is_cut(ranges.get(iterator.var))
    }
    if not cut:
        return True
    loops = (index_var(loop.var) for loop in move.loops)
    outermost = next(loop for loop in loops if loop in {iterator.value for iterator in reduced})
    return not move.block.node.init and cut.keys() == {outermost} and len(cut[outermost].path) == 1


def _is_cut(produced: ProducedRange | None) -> bool:
    """Return whether one iteration produces less than the whole domain of an iterator."""
    return produced is not None and produced.count is not None


def _extended_ranges(
    move: ConsumerMove,
    buffer_name: str,
    stores: Sequence[AccessForm],
    *,
    known_ranges: Mapping[str, ProducedRange],
) -> dict[str, ProducedRange] | None:
    """Return the known ranges and those of iterators that read what the stores to a buffer produce.

    Return None if two ranges of an iterator differ, one is not known, or a loop of the path selects none.
    """
    ranges = dict(known_ranges)
    moving = {index_var(loop.var) for loop in move.loops}
    # A loop with one iteration selects nothing, so it need not be recognized in an index.
    captured = {loop.var for loop in move.path if integer_value(loop.extent) == 1}
    selected = indirect_ranges(move.block, move.loops, stores=stores, path=move.path)
    for name, iterator_range in selected.items():
        # Two buffers require different ranges, and the block has one loop for both.
        if ranges.setdefault(name, iterator_range) != iterator_range:
            return None
        captured |= iterator_range.path
    for iterator, forms in _producer_forms(move, buffer_name, stores):
        produced = produced_range(
            move.block, iterator, forms=forms, path=move.path, known_ranges=ranges
        )
        if produced is None or ranges.setdefault(iterator.var, produced) != produced:
            return None
        # An iterator that is bound to a loop around both nests has no loop that could be restricted.
        if produced.path and iterator.value not in moving:
            return None
        captured |= produced.path
    # A loop that selects nothing would run the consumer again in each of its iterations.
    return ranges if all(loop.var in captured for loop in move.path) else None


def _producer_forms(
    move: ConsumerMove, buffer_name: str, stores: Sequence[AccessForm]
) -> Iterator[tuple[BlockIter, list[LinearForm | None]]]:
    """Yield iterators of the block, each with the index by which every store selects it."""
    iters = move.block.node.iters
    plain = iterator_indexed_dimensions(move.block, buffer_name)
    if len(plain) < len(iters):
        matched = producer_forms(move.block, buffer_name, move.target)
        if matched:
            yield from ((iterator, matched[iterator.var]) for iterator in iters)
            return
    for dimension, iterator in plain:
        yield iterator, [store.indices[dimension] for store in stores]


def _ranges_error(move: ConsumerMove) -> ScheduleError:
    loop = move.path[-1].var
    return schedule_error(
        f"{move.block.primitive}.not_proved",
        f"Cannot prove that each iteration of loop '{loop}' produces complete elements of its own for block "
        f"'{move.block.node.name}'.",
        needs=f"each element that the block reads is written in exactly one iteration of '{loop}'",
    )
