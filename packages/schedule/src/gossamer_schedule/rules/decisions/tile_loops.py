"""The loop over several tiles of features: as it is, with its last tile peeled, or unrolled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from gossamer_schedule.rules.decisions.verdict import chosen_verdict, profitable_verdict
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorTiles

UNROLLED_TILES = 4
"""Maximum number of tiles that are unrolled if the last one is partial. The alternative, a loop over whole
tiles and a peeled last tile, is 0.9 to 1 times as fast (measured on rows of 4 and of 100 elements: each tile
finds the row anew). It is 1.1 to 1.4 times as fast as a loop in which all tiles are masked."""

MAX_UNROLLED_VECTORS = 64
"""Maximum number of vectors of all tiles that are unrolled, over all rows of a group (with 72, the code is
more than `unroll_loops` permits)."""

LoopForm: TypeAlias = Literal["loop", "peeled", "unrolled"]


class TileLoop(msgspec.Struct, frozen=True):
    """The form of a loop over tiles, and why: a loop over all, the last tile peeled, or all unrolled."""

    form: LoopForm
    why: str


def tile_loop(tiles: VectorTiles, *, rows: int = 1) -> TileLoop:
    """Return how the loop over several tiles runs, each of which has `rows` rows.

    >>> tile_loop(VectorTiles(9, vectors=8, lanes=16, is_exact=False)).form
    'peeled'
    """
    if tiles.is_exact or tiles.tiles is None:
        return TileLoop("loop", "all tiles are alike, so unrolling would only add code")
    if not _is_little_code(tiles, rows=rows):
        why = (
            f"only the last tile needs masks, and more than {UNROLLED_TILES} copies, or "
            f"{MAX_UNROLLED_VECTORS} vectors, are too much code"
        )
        return TileLoop("peeled", why)
    why = f"then only the last tile needs masks, and up to {UNROLLED_TILES} tiles are little code"
    return TileLoop("unrolled", why)


def _is_little_code(tiles: VectorTiles, *, rows: int) -> bool:
    """Return whether so few tiles, of so few vectors, may be unrolled."""
    number = tiles.tiles or 1
    return number <= UNROLLED_TILES and rows * tiles.work <= MAX_UNROLLED_VECTORS


_TEXTS = {
    "loop": "a loop over tiles",
    "peeled": "a loop over whole tiles, with the last tile peeled",
    "unrolled": "tiles unrolled",
}


def run_tiles(
    trace: TraceBuilder,
    tiles: VectorTiles,
    *,
    loop_name: str | None,
    block_name: str,
    rows: int = 1,
) -> None:
    """Decide how the loop over tiles of a block runs, if there is one; the other forms are choices. A tile
    has `rows` rows."""
    if not loop_name:
        return
    prior = tile_loop(tiles, rows=rows)
    form = trace.choose(f"{block_name}.tile_loop", prior.form, *_permitted_forms(tiles, rows=rows))
    if form == "peeled":
        trace.record.annotate(name=loop_name, key="peel", value="last")
    elif form == "unrolled":
        trace.unroll(loop_name)
    why = chosen_verdict(profitable_verdict(prior.why), is_prior=form == prior.form).why
    trace.decide(_TEXTS[form], why)


def _permitted_forms(tiles: VectorTiles, *, rows: int) -> Iterator[LoopForm]:
    """Yield the forms of a loop over tiles that are not too much code."""
    if tiles.tiles is None:
        return
    yield "loop"
    if not tiles.is_exact:
        yield "peeled"
    if _is_little_code(tiles, rows=rows):
        yield "unrolled"
