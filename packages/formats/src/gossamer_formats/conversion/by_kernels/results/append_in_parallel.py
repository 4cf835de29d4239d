"""Elements that several threads append to an axis.

One kernel counts the elements of each iteration of the outermost loop. The sums of these counts are the slots
in which another one begins to append in each iteration. Each element is found twice, so one thread appends
without counting, as do two if finding an element takes most of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import Tail
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import size_value
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    define_local,
    load,
    load_local,
    offsets_facts,
    store,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import total_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.results.append_loops import (
    TOTAL,
    append_loops,
    one_by_one,
)
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, mul
from gossamer_ir.nodes import Axis, Expr, For, Stmt, Store
from gossamer_ir.traversal.statement_queries import values_bound_in
from gossamer_ir.traversal.substitute import resolve
from gossamer_support.arrays import Array

COUNTS, STARTS = "COUNTS", "STARTS"
"""The arrays of the number of elements in each iteration of the outermost loop, and of its first slot."""

APPENDED = index_var("appended")
"""The number of all elements."""

MIN_THREADS, MIN_THREADS_IN_ORDER = 3, 2
"""The fewest threads for which counting pays, and for elements that are visited in the order of their values.

Values in another order are late when they are counted, and again when they are appended. (Measured on Emerald
Rapids, CPU time of counting and of appending, as multiples of the time of one thread: rows of BSR 0.5 to 0.8
and 0.9 to 1.3, of SELL 0.5 to 0.9 and 1.0, groups of rows 0.6 to 0.7 and 1.3, diagonals 1.3 and 1.3; ELL 0.3
to 0.4 and 0.7 to 1.0. In a run of conversions to CSR, two threads took 1.0 to 1.2 times as long as one.)"""

MIN_ITERATIONS = 64
"""The fewest iterations for each thread: the work is divided between two of them."""

GRAIN, WORK_PER_ITERATION = 8192, 4
"""The fewest elements that pay for a thread, and the cost of an iteration besides its elements, in
elements."""


def append_in_parallel(
    state: BuildState,
    axis: Axis,
    *,
    stores: Sequence[Stmt],
    arguments: Mapping[str, ArrayArgument],
    tail: Tail | None,
) -> bool:
    """Append the elements on all threads, and store their number in `TOTALS`; return False for few threads,
    or if iterations of the outermost loop depend on each other, or are few."""
    least = MIN_THREADS_IN_ORDER if state.loop.is_in_order else MIN_THREADS
    if state.requirements.threads < least or not _are_independent(state, tail):
        return False
    end = _start_after(state)
    loops = one_by_one(state, axis, (), None, end=end)
    filling = append_loops(state, axis, stores, tail, end=end)
    match loops, filling:
        case (For(start=start) as counting,), (For() as outer,) if start == ZERO:
            count = size_value(state.arguments, outer.extent)
        case _:
            return False
    threads = state.requirements.threads
    if counting.var != outer.var or count is None:
        return False
    if not state.recorder.decide(_are_many, count, threads):
        return False
    _run(state, _Loops(counting, outer), count, arguments)
    return True


class _Loops(NamedTuple):
    """The loops that count elements, and those that append them, over the same iterations."""

    counting: For
    filling: For


def _run(
    state: BuildState,
    loops: _Loops,
    count: int | RecordedValue,
    arguments: Mapping[str, ArrayArgument],
) -> None:
    """Run both kernels."""
    recorder, extent = state.recorder, loops.counting.extent
    all_arguments: dict[str, Any] = {**state.arguments.by_name, **arguments}
    counts = recorder.compute(_no_counts, count)
    counting = {**all_arguments, COUNTS: ArrayArgument(counts, "int64", (extent,))}
    run_kernel(recorder, [_count_loop(loops.counting)], counting)
    starts = recorder.compute(_store_starts, counts, arguments["TOTALS"].array)
    facts = offsets_facts(STARTS, extent, APPENDED)
    filling = {
        **all_arguments,
        APPENDED.name: recorder.compute(total_of, starts),
        STARTS: ArrayArgument(starts, "int64", (add(extent, ONE),), facts),
    }
    run_kernel(recorder, [_in_parallel(loops.filling)], filling)


def _count_loop(loop: For) -> For:
    """Return the loop that stores how many elements each iteration has."""
    counted = store(COUNTS, index_var(loop.var), load_local(TOTAL))
    return replace(loop, body=(*define_local(TOTAL, ZERO), *loop.body, counted))


def _in_parallel(loop: For) -> For:
    """Return the loop that appends the elements of each iteration from its first slot on.

    Nothing in the program shows that two iterations append in different slots, so the loop is parallel as it
    is written: an iteration appends as many elements as were counted.
    """
    first = load(STARTS, index_var(loop.var), "int64")
    return replace(
        loop,
        body=(*define_local(TOTAL, first), *loop.body),
        kind="parallel",
        weight=add(first, mul(index_var(loop.var), index(WORK_PER_ITERATION))),
        grain=index(GRAIN),
    )


def _start_after(state: BuildState) -> Expr:
    """Return the first slot of the next iteration of the outermost loop."""
    outer = next(stmt for stmt in state.loop.nest if isinstance(stmt, For))
    return load(STARTS, add(index_var(outer.var), ONE), "int64")


def _are_independent(state: BuildState, tail: Tail | None) -> bool:
    """Return whether an iteration of the outermost loop reads nothing that another one stores, and stores the
    ends of other fibers."""
    elements = state.elements
    if elements.starts or elements.stmts:
        return False
    if tail is None:
        return True
    assert isinstance(tail.stmt, Store)
    return _is_of_iteration(state.loop.nest, tail.stmt.indices[0])


def _is_of_iteration(nest: Sequence[Stmt], end: Expr) -> bool:
    """Return whether the index of the end of a fiber is that of one iteration of the outermost loop only:
    `i + 1`, or `i * height + k + 1` for a loop `k` over the height."""
    values = values_bound_in(nest)
    outer, *inner = [stmt for stmt in nest if isinstance(stmt, For)]
    iteration = index_var(outer.var)
    fibers = [
        add(mul(iteration, loop.extent), index_var(loop.var))
        for loop in inner
        if loop.start == ZERO
    ]
    ends = [affine_of(add(fiber, ONE)) for fiber in (iteration, *fibers)]
    return affine_of(resolve(end, values)) in ends


def _are_many(iterations: int, threads: int) -> bool:
    return iterations >= MIN_ITERATIONS * threads


def _no_counts(iterations: int) -> Array:
    return np.empty(iterations, np.int64)


def _store_starts(counts: Array, totals: Array) -> Array:
    """Return the first slots of iterations with these numbers of elements, and store the number of all in
    `totals`.

    >>> totals = np.zeros(1, np.int64)
    >>> _store_starts(np.array([2, 0, 1]), totals), totals
    (array([0, 2, 2, 3]), array([3]))
    """
    starts = np.zeros(counts.size + 1, np.int64)
    counts.cumsum(out=starts[1:])
    totals[0] = starts[-1]
    return starts
