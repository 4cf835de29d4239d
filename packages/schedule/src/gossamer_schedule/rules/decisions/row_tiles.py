"""A tile of a row in registers while its elements are read."""

from __future__ import annotations

from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.register_tiles import TileNest, TileNests, accumulate_tile
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles


def accumulate_row_tile(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    tiles: VectorTiles,
    loops: VectorLoops,
    holder: str,
    over_iters: bool = False,
) -> TileNests:
    """Accumulate the tile of loops in a local buffer inside loop `holder`, and return its nests."""
    nests = accumulate_tile(
        trace,
        pattern,
        tiles,
        update=TileNest(None, loops),
        holder=holder,
        reduction=pattern.reduction,
        over_iters=over_iters,
    )
    trace.decide(
        f"a tile of row {pattern.row} in registers during the loop over its elements {pattern.position}",
        "each element is read once per tile, and the result is written once",
    )
    return nests
