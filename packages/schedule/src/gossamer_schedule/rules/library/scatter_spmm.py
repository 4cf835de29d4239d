"""Updates of rows of features, whose rows may repeat: tiles of features in parallel.

Rows that are not known to be distinct cannot be shared among threads without atomic updates: rows that were
cut into pieces, coordinates, columns, diagonals. Features are distinct, so that each thread updates some
features of all rows, in the order of the program. Results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Decision, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.patterns.feature_updates import FeatureUpdates, feature_updates
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder, VectorLoops

VECTORS = 2
"""Vectors of a tile. More tiles occupy more threads, but each reads all indices (measured on 2 threads, 64
features in 512 bits: 2 tiles of 2 vectors are 1.5 to 2 times as fast as 4 tiles of 1 vector)."""

MANY_VECTORS = 8
"""Vectors of all features from which tiles are twice as large, since there are enough of them."""


@schedule_rule(
    pattern='`out[..., k] = out[..., k] + ...` over any axes and features ("...S"), without an init',
    programs="parts of a decomposed matrix whose rows may repeat: cut rows, COO, CSC, DIA, slices",
    schedule="tiles of features in parallel and in vectors; fibers of a row are summed in registers",
)
def scatter_spmm(module: Module, target: Target, _context: RuleContext) -> PatternMatch | None:
    """Return the schedule for updates of rows of features; None for any other program."""
    pattern = feature_updates(module)
    if pattern is None or pattern.features in (0, 1):
        return None
    tile = _tile(pattern, hardware_params(target))
    trace = TraceBuilder()
    loops = _ordered(trace, pattern, tile)
    what = f"features in tiles of {counted(tile.vectors, 'vector')} of {tile.lanes} lanes"
    why = "each thread has features of its own, whatever rows they are in"
    decisions = [Decision(what, why, trace.steps)]
    nests = [loops]
    if pattern.reduction and len(pattern.outer) > 1:
        accumulating = TraceBuilder()
        nests += _in_registers(accumulating, pattern, tile, loops)
        why = f"the slots {pattern.reduction} of a row are added before the row is read and written"
        decisions.append(Decision("a tile in registers", why, accumulating.steps))
    return PatternMatch(pattern.text, (*decisions, _vectors(nests), _parallel(loops)))


class _Tile(NamedTuple):
    """The number of tiles (None: symbolic) of `vectors` of `lanes`; exact if no lane is left over."""

    tiles: int | None
    vectors: int
    lanes: int
    exact: bool


def _tile(pattern: FeatureUpdates, hardware: HardwareParams) -> _Tile:
    lanes = hardware.lanes(pattern.dtype, holding=pattern.features)
    if pattern.features is None:
        return _Tile(None, VECTORS, lanes, exact=False)
    count = -(-pattern.features // lanes)
    vectors = min(count, VECTORS if count < MANY_VECTORS else 2 * VECTORS)
    tiles = -(-count // vectors)
    return _Tile(tiles, vectors, lanes, exact=tiles * vectors * lanes == pattern.features)


def _ordered(trace: TraceBuilder, pattern: FeatureUpdates, tile: _Tile) -> VectorLoops:
    """Order the loops as tile, all others, vector, lane."""
    loops = trace.split_in_vectors(
        pattern.feature,
        tiles=tile.tiles,
        vectors=tile.vectors,
        lanes=tile.lanes,
        exact=tile.exact,
    )
    if loops.tile:
        order = (loops.tile, *pattern.outer, loops.vector, loops.lane)
        trace.add("reorder", loops=tuple(loop for loop in order if loop))
    return loops


def _in_registers(
    trace: TraceBuilder, pattern: FeatureUpdates, tile: _Tile, loops: VectorLoops
) -> tuple[VectorLoops, VectorLoops]:
    """Sum the slots of a fiber in a local buffer, and add it to the row. Return the loops of the init and of
    the addition."""
    accumulators = trace.accumulate_locally(
        pattern.block,
        buffer=pattern.output,
        holder=pattern.outer[-2],
        reduction=pattern.reduction,
        inside=[loop for loop in (loops.vector, loops.lane) if loop],
        elements=(pattern.feature,),
        over_iterators=True,
    )
    copy = trace.split_in_vectors(
        accumulators.copy[pattern.feature],
        tiles=1,
        vectors=tile.vectors,
        lanes=tile.lanes,
        exact=loops.lane == pattern.feature,
    )
    return accumulators.init_of(loops), copy


def _vectors(nests: list[VectorLoops]) -> Decision:
    trace = TraceBuilder()
    for loops in nests:
        trace.add("vectorize", loop=loops.lane)
        if loops.vector:
            trace.add("unroll", loop=loops.vector)
    why = "features are contiguous, and registers are assigned at compile time"
    return Decision("lanes vectorized, and the vectors of a tile unrolled", why, trace.steps)


def _parallel(loops: VectorLoops) -> Decision:
    if not loops.tile:
        return Decision("one thread", "there is one tile, and rows may repeat")
    trace = TraceBuilder()
    trace.add("parallel", loop=loops.tile)
    return Decision("tiles in parallel", "rows may repeat, features do not", trace.steps)
