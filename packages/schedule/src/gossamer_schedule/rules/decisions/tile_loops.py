"""The loop over tiles of features: as it is, with its last tile peeled, or unrolled."""

from __future__ import annotations

from gossamer_schedule.rules.profitability.tile_loops import tile_loop
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

_TEXTS = {
    "loop": "a loop over tiles",
    "peeled": "a loop over whole tiles, with the last tile peeled",
    "unrolled": "tiles unrolled",
}


def run_tiles(trace: TraceBuilder, tiles: VectorTiles, loop: str | None) -> None:
    """Decide how the loop over tiles runs, if there is one."""
    if not loop:
        return
    chosen = tile_loop(tiles)
    if chosen.form == "peeled":
        trace.add("annotate", name=loop, key="peel", value="last")
    elif chosen.form == "unrolled":
        trace.unroll(loop)
    trace.decide(_TEXTS[chosen.form], chosen.why)
