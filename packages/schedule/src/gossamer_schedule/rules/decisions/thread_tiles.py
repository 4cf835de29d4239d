"""Tiles of features in parallel, each with its part of the dense operand packed by its thread."""

from __future__ import annotations

from gossamer_schedule.rules.decisions.packing import ThreadTiles, pack_operand
from gossamer_schedule.rules.decisions.row_tiles import accumulate_row_tile
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.register_tiles import TileNests, tile_around
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


def run_thread_tiles(
    trace: TraceBuilder, pattern: RowReduction, *, packed: ThreadTiles
) -> TileNests:
    """Run tiles of features in parallel. Each packs its part of the operand, and then computes all rows.
    Return the nests of a tile."""
    inner, operand = (pattern.row, *pattern.words, pattern.position), pattern.gather.operand
    loops = tile_around(trace, pattern.feature, packed.tiles, inner=inner)
    assert loops.tile is not None, "packing pays for several tiles only"
    assert operand is not None, "packing pays for one operand only"
    trace.decide(
        f"features in {packed.tiles.text}, around the rows {pattern.row}",
        "all rows are computed with a packed tile of the operand before the next one is packed",
    )
    nests = accumulate_row_tile(trace, pattern, tiles=packed.tiles, loops=loops, holder=pattern.row)
    run_tile_in_vectors(trace, nests.all)
    pack_operand(
        trace,
        pattern.block,
        tiles=packed.tiles,
        operand=operand,
        loop=loops.tile,
        dimensions=2,
        is_shared=False,
    )
    trace.decide(f"{operand} packed for each tile of features", packed.packing.why)
    trace.record.parallel(loop=loops.tile, grain=1)
    trace.decide(
        "tiles of features in parallel",
        "each thread reads only the tile that it has packed; there are enough tiles for all cores, and each "
        "is more work than waking a thread",
    )
    return nests
