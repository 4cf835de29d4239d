"""Updates of rows of features, whose rows may repeat: tiles of features in parallel.

Rows that are not known to be distinct cannot be shared among threads without atomic updates: rows that were
cut into segments, coordinates, columns, diagonals. Features are distinct, so that each thread updates some
features of all rows, in the order of the program. Results do not depend on the number of threads.
"""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_schedule.rules.decisions.feature_tiles import feature_tiles
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.patterns.feature_updates import FeatureUpdates, feature_updates
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNest, accumulate_tile, tile_around
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles


@schedule_rule(
    pattern='`out[..., k] = out[..., k] + ...` over any axes and features ("...S"), without an init',
    programs="parts of a decomposed matrix whose rows may repeat: cut rows, COO, CSC, DIA, slices",
    schedule="tiles of features in parallel and in vectors; fibers of a row are summed in registers",
    after={
        "row_spmm": "its rows are known to differ, so that they run in parallel",
        "tile_spmm": "its rows are known to differ, so that they run in parallel",
        "group_spmm": "its rows are known to differ, so that they run in parallel",
    },
)
def scatter_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for updates of rows of features; None for any other program."""
    pattern = feature_updates(module)
    if pattern is None or pattern.features in (0, 1):
        return None
    tiles, trace = feature_tiles(pattern, context.machine), context.new_trace()
    loops = tile_around(trace, pattern.feature, tiles, inner=pattern.outer)
    trace.decide(
        f"features in {tiles.text}",
        "each thread has features of its own, whatever rows they are in",
    )
    nests = _accumulate_slots(trace, pattern, tiles=tiles, loops=loops)
    run_tile_in_vectors(trace, nests)
    _run_tiles_in_parallel(trace, loops)
    return PatternMatch(pattern.text, trace)


def _accumulate_slots(
    trace: TraceBuilder, pattern: FeatureUpdates, *, tiles: VectorTiles, loops: VectorLoops
) -> tuple[TileNest, ...]:
    """Sum the slots of a fiber in a local buffer, which is added to the row, if there are several. Return the
    nests over a tile."""
    update = TileNest(None, loops)
    if not pattern.reduction or len(pattern.outer) < 2:
        return (update,)
    nests = accumulate_tile(
        trace,
        pattern,
        tiles,
        update=update,
        holder=pattern.outer[-2],
        reduction=pattern.reduction,
        over_iters=True,
    )
    trace.decide(
        "a tile in registers",
        f"the slots {pattern.reduction} of a row are added before the row is read and written",
    )
    return nests.all


def _run_tiles_in_parallel(trace: TraceBuilder, loops: VectorLoops) -> None:
    if not loops.tile:
        trace.decide("one thread", "there is one tile, and rows may repeat")
        return
    trace.record.parallel(loop=loops.tile)
    trace.decide("tiles in parallel", "rows may repeat, features do not")
