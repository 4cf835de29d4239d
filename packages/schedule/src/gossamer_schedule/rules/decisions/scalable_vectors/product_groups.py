"""Dot products of the elements of a row in groups, with a loop over vectors of features.

Vectors are a loop if they are scalable, since their number is known at run time only, or if they are many.
All elements of a group take a vector in one iteration of it, each with a register for its partial sums: a
vector of the row's own features is loaded once for the group, and so is the mask of the last one. The
remainder of a row is in smaller groups, since a group of half the size costs little more than half as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.patterns.sampled_products import SampledProducts
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import lanes_in_words

GROUPS = (16, 8, 4, 2)
"""Elements of the groups, the largest first (counted with 128 features and rows of 64 elements: 82
instructions for an element at 128 bits, with groups of 8 and 4 only 90, one element at a time 229)."""


def product_groups(machine: Machine, stats: Stats | None) -> tuple[int, ...]:
    """Return the sizes of the groups: those that registers hold, and that a row of mean length fills.

    >>> few = Stats(rows=2, columns=8, nnz=10, longest_row=6, empty_rows=0)
    >>> product_groups(Machine(), None), product_groups(Machine(), few)
    ((16, 8, 4, 2), (4, 2))
    """
    most = machine.accumulators if stats is None else min(machine.accumulators, stats.mean_row)
    return tuple(size for size in GROUPS if size <= most)


def run_product_groups(
    trace: TraceBuilder,
    pattern: SampledProducts,
    *,
    groups: Sequence[int],
    lanes: int | str,
    number: str,
) -> None:
    """Compute the dot products of a row in groups of these sizes, and the last one by itself. `number` is the
    reason for a loop over vectors, which is their number."""
    vectors, lane = trace.split(pattern.feature, factors=(None, lanes))
    partial = trace.rfactor(
        pattern.block,
        buffer=pattern.output,
        loop=lane,
        elements=(pattern.row, pattern.position),
        axis=1,
    )
    trace.record.reverse_compute_at(pattern.block, loop=pattern.position)
    trace.record.set_scope(buffer=partial.buffer, scope="local")
    init = trace.decompose_reduction(partial.block, loop=vectors, elements=(lane,))
    combined = partial.combining.loop(lane)
    trace.decide(
        f"partial sums over the features in vectors of {lanes_in_words(lanes)}",
        f"additions in different lanes do not wait for each other; {number}, so they run in a loop",
    )
    inside = (vectors, lane, *filter(None, (init.loop(lane), combined)))
    points = tuple(f"({pattern.length}) // {size} * {size}" for size in groups)
    parts = trace.loop_partition(pattern.position, points=points, inside=inside)
    for size, (position, over, *lane_loops) in zip((*groups, 1), parts, strict=True):
        if size > 1:
            _group(trace, position, over=over, size=size)
        trace.vectorize(*lane_loops)
    sizes = ", ".join(map(str, groups))
    trace.decide(
        f"elements of a row in groups of {sizes}, then the last one",
        "all elements of a group use a vector of the row when it is loaded, and each has a register for its "
        "partial sums",
    )


def _group(trace: TraceBuilder, position: str, *, over: str, size: int) -> None:
    """Run elements in groups, whose inits, sums in the loop `over`, and results are unrolled."""
    _, element = trace.split(position, factors=(None, size))
    init, update, store = trace.fission(element, parts=3)
    trace.reorder(over, update)
    trace.unroll(init, update, store)
