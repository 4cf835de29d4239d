"""The loop over several tiles of features: as it is, with its last tile peeled, or unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gossamer_schedule.rules.decisions.verdict import chosen_verdict, pays
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

UNROLLED_TILES = 4
"""Maximum number of tiles that are unrolled if the last one is partial; this is fewer than 64 vectors of
code. The alternative, a loop over whole tiles and a peeled last tile, is 0.9 to 1 times as fast (measured on
rows of 4 and of 100 elements: each tile finds the row anew). It is 1.1 to 1.4 times as fast as a loop in
which all tiles are masked."""

LoopForm: TypeAlias = Literal["loop", "peeled", "unrolled"]


class TileLoop(msgspec.Struct, frozen=True):
    """The form of a loop over tiles, and why: a loop over all, the last tile peeled, or all unrolled."""

    form: LoopForm
    why: str


def tile_loop(tiles: VectorTiles) -> TileLoop:
    """Return how the loop over several tiles runs.

    >>> tile_loop(VectorTiles(9, vectors=8, lanes=16, is_exact=False)).form
    'peeled'
    """
    if tiles.is_exact or tiles.tiles is None:
        return TileLoop("loop", "all tiles are alike, so unrolling would only add code")
    if tiles.tiles > UNROLLED_TILES:
        why = f"only the last tile needs masks, and more than {UNROLLED_TILES} copies are too much code"
        return TileLoop("peeled", why)
    why = f"then only the last tile needs masks, and up to {UNROLLED_TILES} tiles are little code"
    return TileLoop("unrolled", why)


_TEXTS = {
    "loop": "a loop over tiles",
    "peeled": "a loop over whole tiles, with the last tile peeled",
    "unrolled": "tiles unrolled",
}


def run_tiles(
    trace: TraceBuilder, tiles: VectorTiles, *, loop_name: str | None, block_name: str
) -> None:
    """Decide how the loop over tiles of a block runs, if there is one; the other forms are choices."""
    if not loop_name:
        return
    prior = tile_loop(tiles)
    form = trace.choose(f"{block_name}.tile_loop", prior.form, *_other_forms(tiles))
    if form == "peeled":
        trace.record.annotate(name=loop_name, key="peel", value="last")
    elif form == "unrolled":
        trace.unroll(loop_name)
    why = chosen_verdict(pays(prior.why), is_prior=form == prior.form).why
    trace.decide(_TEXTS[form], why)


def _other_forms(tiles: VectorTiles) -> Iterator[LoopForm]:
    """Yield the forms of a loop over tiles that are not too much code."""
    if tiles.tiles is None:
        return
    yield "loop"
    if not tiles.is_exact:
        yield "peeled"
    if tiles.tiles <= UNROLLED_TILES:
        yield "unrolled"
