"""Features in whole tiles of scalable vectors, and the features left over in smaller tiles.

The number of vectors that hold all features is known at run time only. If each vector of a tile has a mask,
these take the predicate registers, and limit the tile. So the features that fill whole tiles have a nest
without masks, and only those left over have masks.
"""

from __future__ import annotations

from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.gather_tiling import MAX_UNIT_LANES
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.row_reduction import RowReduction
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

WHOLE_VECTORS = 8
"""Vectors of a whole tile: an element of the matrix and its column are loaded once for all of them (counted
at 128 bits with 128 features: 91 instructions for a nonzero, with tiles of 4 vectors 124)."""

REST_VECTORS = 4
"""Maximum number of vectors of a tile of the features left over. Long vectors leave few of them."""


def whole_tiles_verdict(pattern: RowReduction, machine: Machine) -> Verdict:
    """Decide whether whole tiles have a nest of their own."""
    if pattern.features is None:
        return unprofitable_verdict("the number of features is unknown, so it may not fill a tile")
    if pattern.words:
        return unprofitable_verdict(
            "the bits of a word are found one after the other for each nest"
        )
    lanes = machine.lanes(pattern.dtype)
    if WHOLE_VECTORS * machine.unit_lanes(pattern.dtype) > MAX_UNIT_LANES:
        return unprofitable_verdict(
            f"{WHOLE_VECTORS} vectors of {pattern.dtype} have too many lanes for proofs"
        )
    if pattern.features < WHOLE_VECTORS * lanes:
        return unprofitable_verdict(
            f"{pattern.features} features do not fill {WHOLE_VECTORS} vectors"
        )
    return profitable_verdict(
        f"{pattern.features} features fill tiles of {WHOLE_VECTORS} vectors without masks, unless vectors "
        f"are long; those left over are in tiles of {REST_VECTORS}, whose masks fit the predicate registers"
    )


def accumulate_whole_tiles(
    trace: TraceBuilder, pattern: RowReduction, *, machine: Machine, verdict: Verdict
) -> None:
    """Accumulate the features of a row in whole tiles, then those left over, in local buffers."""
    feature, position = pattern.feature, pattern.position
    assert feature is not None
    lanes = machine.unit_lanes(pattern.dtype)
    whole = VectorTiles(None, WHOLE_VECTORS, lanes, is_exact=True, is_scalable=True)
    rest = VectorTiles(None, REST_VECTORS, lanes, is_exact=False, is_scalable=True)
    trace.reorder(feature, position)
    trace.accumulate_locally(
        pattern.block, buffer=pattern.output, holder=feature, reduction=pattern.reduction
    )
    point = f"{pattern.features} // ({whole.tile_factor}) * ({whole.tile_factor})"
    parts = trace.loop_partition(feature, points=(point,), inside=(position,))
    trace.decide("features in whole tiles, and those left over", verdict.why)
    for tiles, (part, terms) in zip((whole, rest), parts, strict=True):
        _accumulate_part(trace, part, terms=terms, tiles=tiles)
        trace.decide(
            f"features {part} in {tiles.text}",
            f"a tile is in registers during the loop over elements {terms}, and is stored once",
        )


def _accumulate_part(trace: TraceBuilder, part: str, *, terms: str, tiles: VectorTiles) -> None:
    """Run a loop over features around an init, the loop over `terms` and a store in tiles of vectors."""
    _, elements = trace.split(part, factors=(None, tiles.tile_factor))
    init, update, store = trace.fission(elements, parts=3)
    trace.reorder(terms, update)
    for loop in (init, update, store):
        vector, lane = trace.split(loop, factors=(tiles.vectors, tiles.lane_factor))
        trace.vectorize(lane)
        trace.unroll(vector)
