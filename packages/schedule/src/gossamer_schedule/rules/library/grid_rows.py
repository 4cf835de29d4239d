"""Programs over the rows of a sparse matrix, on machines that run grids of threads.

A product has a thread for each element of the result, or for two or four adjacent ones of a wide row, which
one instruction loads: rows and features are threads of a block, and blocks have as many rows as fill them. A
sum over a row has a thread for each row, or several that add up what they have if rows are long. A sum over
features has the threads of a warp, which load vectors if these leave none of them idle. Values that depend on
their row have a thread for each row unless rows are long, and other values of stored elements one for each of
them.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Module
from gossamer_machine import Grid
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration
from gossamer_schedule.rules.decisions.grids.grid_threads import (
    block_threads,
    feature_threads,
    run_rows_and_features,
)
from gossamer_schedule.rules.decisions.grids.thread_features import summed_features, thread_features
from gossamer_schedule.rules.patterns.elementwise import Elementwise, elementwise_pattern
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, row_reduction
from gossamer_schedule.rules.patterns.sampled_products import SampledProducts, sampled_products
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

MIN_SHARED_FEATURES = 8
"""Features of a sum that several threads compute. With fewer, each thread would have at most one."""

MIN_SHARED_ROW = 4
"""Elements of a row on average that several threads add up. Fewer are about one for each thread."""


@schedule_rule(
    pattern="a reduction over the fiber of a row, or a sum over features or a value for each stored element",
    programs="SpMM, SpMV, SDDMM and element-wise programs over CSR and ragged rows",
    schedule="a thread for each element of the result, or for two or four features of a wide row, or the "
    "threads of a warp for a sum over features, on machines that run grids of threads",
    is_for_grids=True,
)
def grid_rows(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such a program; None for any other program, or on a CPU."""
    grid = context.machine.grid
    if grid is None:
        return None
    trace = context.new_trace()
    reduction = row_reduction(module)
    if reduction is not None:
        return _reduction_match(trace, reduction, grid=grid, stats=context.stats)
    products, values = sampled_products(module), elementwise_pattern(module)
    if products is not None:
        _run_products(trace, module, products=products, grid=grid)
        return PatternMatch(products.text, trace)
    if values is None:
        return None
    mean = None if context.stats is None else context.stats.mean_row
    if values.is_flat or _row_threads(mean, grid) is not None:
        _bind_slots(trace, _run_all_slots(trace, module, pattern=values), grid=grid)
    else:
        _bind(trace, values.row, threads=block_threads(grid))
        trace.decide("a thread for each row", "a value depends on the row of its element")
    return PatternMatch(values.text, trace)


def _reduction_match(
    trace: TraceBuilder, pattern: RowReduction, *, grid: Grid, stats: Stats | None
) -> PatternMatch | None:
    if pattern.words or pattern.features == 0:
        return None
    if pattern.feature is None:
        _run_rows(trace, pattern, grid=grid, stats=stats)
    else:
        _run_features(trace, pattern, feature=pattern.feature, grid=grid, stats=stats)
    return PatternMatch(pattern.text, trace)


def _run_features(
    trace: TraceBuilder, pattern: RowReduction, *, feature: str, grid: Grid, stats: Stats | None
) -> None:
    """Compute each feature of a row by a thread, or several adjacent ones if vectors pay."""
    rows = None if stats is None else stats.rows
    lanes = thread_features(grid, pattern.dtype, features=pattern.features, rows=rows)
    trace.reorder(pattern.row, feature, pattern.reduction)
    if lanes == 1 or pattern.features is None:
        _accumulate_in_register(trace, pattern, element=feature)
        run_rows_and_features(
            trace, pattern.row, feature=feature, features=pattern.features, grid=grid
        )
        return
    vectors, lane = trace.split(feature, factors=(None, lanes))
    trace.reorder(vectors, pattern.reduction, lane)
    init, copy = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=vectors,
        reduction=pattern.reduction,
        inside=(lane,),
        elements=(feature,),
    )
    trace.vectorize(lane, init.loops[lane], copy.loops[feature])
    trace.decide(
        f"{lanes} adjacent features of a row in registers of a thread",
        f"one instruction loads {lanes} features, a stored element is loaded once for them, and a row still "
        "fills whole warps",
    )
    run_rows_and_features(
        trace, pattern.row, feature=vectors, features=pattern.features // lanes, grid=grid
    )


def _run_rows(
    trace: TraceBuilder, pattern: RowReduction, *, grid: Grid, stats: Stats | None
) -> None:
    """Compute each row by a thread, or by the threads of a warp, or a part of it, if its elements are
    enough."""
    lanes = _row_threads(pattern.width if stats is None else stats.mean_row, grid)
    if lanes is None or not pattern.is_regular:
        _accumulate_in_register(trace, pattern, element=pattern.row)
        _bind(trace, pattern.row, threads=block_threads(grid))
        trace.decide(
            "a thread for each row", "one thread adds up the elements of a row in their order"
        )
        return
    # The length of a row is split before rows beyond the last one get a length, so that accesses are proved.
    _, lane = trace.split(pattern.position, factors=(None, lanes))
    blocks, rows = trace.split(pattern.row, factors=(None, block_threads(grid) // lanes))
    _bind_products(trace, blocks, elements=rows, lane=lane)
    trace.decide(
        f"{lanes} threads for each row add up what they have",
        "rows are long on average, and threads of a warp read adjacent elements",
    )


def _row_threads(mean: float | None, grid: Grid) -> int | None:
    """Return the threads of a warp that rows of this mean length share; None if one thread has a row."""
    if mean is None or mean < MIN_SHARED_ROW:
        return None
    return min(grid.warp, 1 << int(mean).bit_length() - 1)


def _bind_products(trace: TraceBuilder, blocks: str, *, elements: str, lane: str) -> None:
    """Bind loops over elements of the result and over the threads that compute one together."""
    for loop, thread in ((blocks, "blockIdx.x"), (elements, "threadIdx.y"), (lane, "threadIdx.x")):
        trace.record.bind(loop=loop, thread=thread)  # type: ignore[arg-type]  # a tag


def _accumulate_in_register(trace: TraceBuilder, pattern: RowReduction, *, element: str) -> None:
    """Keep the element that an iteration of a loop computes in a register of its thread."""
    trace.accumulate_locally(
        pattern.block, buffer=pattern.output, holder=element, reduction=pattern.reduction
    )
    trace.decide("each element in a register", "a thread stores it once, after the last term")


def _run_products(
    trace: TraceBuilder, module: Module, *, products: SampledProducts, grid: Grid
) -> None:
    """Compute each sum over features by the threads of a warp, or by one thread if there are few features."""
    loop = _run_all_slots(trace, module, pattern=products)
    if products.features is not None and products.features < MIN_SHARED_FEATURES:
        _bind_slots(trace, loop, grid=grid)
        return
    width = 1
    if products.is_regular:
        width = summed_features(grid, products.dtype, features=products.features)
    vectors = None if products.features is None else products.features // width
    lanes = feature_threads(vectors, grid)
    blocks, slots = trace.split(loop, factors=(None, block_threads(grid) // lanes))
    factors = (None, lanes) if width == 1 else (None, lanes, width)
    _, lane, *inner = trace.split(products.feature, factors=factors)
    _bind_products(trace, blocks, elements=slots, lane=lane)
    # After the loop outside of it is bound: a vector is not a term that threads add up.
    trace.vectorize(*inner)
    trace.decide(
        f"{lanes} threads for each stored element add up what they have",
        "threads of a warp read adjacent elements of the rows of both operands"
        + (f", {width} of them by one instruction" if inner else ""),
    )


def _run_all_slots(
    trace: TraceBuilder, module: Module, *, pattern: SampledProducts | Elementwise
) -> str:
    """Make one loop over all stored elements, and return its name."""
    single = single_iteration(module)
    assert single is not None, "the patterns have one iteration"
    function, iteration = single
    names = [axis.name for axis in axes_of(function, iteration)[:2]]
    loop = trace.sparse_fuse(iteration.name, axes=names, vars=(pattern.row, pattern.position))
    trace.decide(
        "one loop over all elements",
        "rows of different lengths keep as many threads busy",
        stage="coordinate",
    )
    return loop


def _bind_slots(trace: TraceBuilder, loop_name: str, *, grid: Grid) -> None:
    _bind(trace, loop_name, threads=block_threads(grid))
    trace.decide("a thread for each stored element", "the elements are independent of each other")


def _bind(trace: TraceBuilder, loop_name: str, *, threads: int) -> None:
    blocks, thread = trace.split(loop_name, factors=(None, threads))
    trace.record.bind(loop=blocks, thread="blockIdx.x")
    trace.record.bind(loop=thread, thread="threadIdx.x")
