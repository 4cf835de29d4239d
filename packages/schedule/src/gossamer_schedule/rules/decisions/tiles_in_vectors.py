"""The nests over a tile in registers, in vectors."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_schedule.rules.steps.register_tiles import TileNest, run_in_vectors
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


def run_tile_in_vectors(
    trace: TraceBuilder,
    nests: Iterable[TileNest],
    *,
    what: str = "lanes vectorized, and the vectors of a tile unrolled",
) -> None:
    """Vectorize the lanes, and unroll the vectors and rows of a tile."""
    run_in_vectors(trace, nests)
    why = "features are contiguous, and registers are assigned at compile time"
    trace.decide(what, why)
