"""BSR times dense: a panel of rows by a few vectors of features stays in registers.

Within a tile each column of a block costs one broadcast for each row of the panel and one load for
each vector; every pair of them is one fused multiply-add. Block rows run in parallel, balanced by
blocks; within one the tiles of features come first, so that what a panel reads of the dense operand
is still in the cache for the next panel. The terms of an element are added in the program's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gossamer_ir.core.counted import counted
from gossamer_ir.interchange.records import Arg, Decision, ScheduleReport, Stats, Step, Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.cost.register_tiles import Tile, best_tile, tile_reason
from gossamer_schedule.rules.recognise.block_reduction import BlockReduction, block_reduction

UNROLLED_PANELS = 8
"""As many panels are unrolled where the last one is partial, so that no row is masked. (The masks of
a partial tile of features are cheaper than a copy of the code.)"""

WORK_PER_ROW = 1
"""What a block row costs besides its blocks, in blocks."""

FMAS_PER_VECTOR = 4
"""Multiply-adds in registers that take as long as one vector from memory."""


class _Nest(NamedTuple):
    """The loops, outermost first; "" for what is not there: loops of one iteration are not made."""

    tile: str
    panel: str
    row: str
    vector: str
    lane: str


def bsr_times_dense(module: Module, target: Target, _stats: Stats | None) -> ScheduleReport | None:
    """The schedule for a sum over dense blocks; None for anything else."""
    pattern = block_reduction(module)
    if pattern is None or pattern.height == 0 or pattern.features == 0:
        return None
    tile = best_tile(pattern, target)
    nest = _nest(pattern, tile)
    decisions = (
        Decision(
            _tile_text(tile), tile_reason(pattern, target), tuple(_ordered(pattern, tile, nest))
        ),
        Decision(
            "the tile in registers while the blocks of its row pass by",
            "what a block and the dense operand have is read once for a tile, the result written once",
            tuple(_in_registers(pattern, tile, nest)),
        ),
        *_in_code(pattern, tile, nest),
        _panels(pattern, tile, nest),
        _parallel(pattern, tile),
    )
    return ScheduleReport("bsr_times_dense", pattern.text, decisions)


def _tile_text(tile: Tile) -> str:
    rows = counted(tile.rows, "row")
    if tile.lanes == 1:
        return f"a tile of {rows}"
    return f"a tile of {rows} by {counted(tile.vectors, 'vector')} of {tile.lanes} lanes"


def _in_code(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Iterator[Decision]:
    """The lanes of a tile, then its vectors and rows."""
    lanes = tuple(_vectorized(pattern, tile, nest))
    if lanes:
        why = f"neighbouring features {pattern.feature} lie side by side"
        yield Decision("features in lanes", why, lanes)
    unrolled = tuple(_unrolled(pattern, tile, nest))
    if unrolled:
        why = "a register is chosen when code is made"
        yield Decision("rows and vectors of a tile unrolled", why, unrolled)


def _panels(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Decision:
    """Whether the panels of a block row are unrolled."""
    height = pattern.height or tile.rows
    if height % tile.rows == 0:
        return Decision("a loop over panels of rows", "all are alike, or there is one")
    if height > UNROLLED_PANELS * tile.rows:
        why = f"more than {UNROLLED_PANELS} copies would be too much code, so rows are masked"
        return Decision("a loop over panels of rows", why)
    steps = (_step("unroll", loop=nest.panel),)
    return Decision(
        "panels of rows unrolled", "only the last one is partial, and no row masked", steps
    )


def _nest(pattern: BlockReduction, tile: Tile) -> _Nest:
    outer, vector, lane = _feature_loops(pattern, tile)
    panel, row = _row_loops(pattern, tile)
    return _Nest(outer, panel, row, vector, lane)


def _row_loops(pattern: BlockReduction, tile: Tile) -> tuple[str, str]:
    """The loops over panels and over the rows of one."""
    inner = pattern.inner_row
    if tile.rows == pattern.height:
        return "", inner
    return (inner, "") if tile.rows == 1 else (f"{inner}_0", f"{inner}_1")


def _feature_loops(pattern: BlockReduction, tile: Tile) -> tuple[str, str, str]:
    """The loops over tiles, vectors and lanes; `split` numbers those it makes."""
    feature = pattern.feature
    if tile.lanes == 1:
        return feature, "", ""
    counts = {"tile": _tiles(pattern, tile), "vector": tile.vectors}
    made = [name for name, count in counts.items() if count != 1]
    if not made and pattern.features == tile.lanes:
        return "", "", feature
    names = {name: f"{feature}_{position}" for position, name in enumerate([*made, "lane"])}
    return names.get("tile", ""), names.get("vector", ""), names["lane"]


def _tiles(pattern: BlockReduction, tile: Tile) -> int | None:
    """How many tiles hold all features, None where that is symbolic."""
    if pattern.features is None:
        return None
    return -(-pattern.features // (tile.vectors * tile.lanes))


def _step(op: str, **args: Arg) -> Step:
    return Step(op, args)


def _ordered(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Iterator[Step]:
    """Loops tile, panel, position, inner position, row, vector, lane."""
    if nest.lane not in ("", pattern.feature):
        outer = (_tiles(pattern, tile),) if nest.tile else ()
        inner = _in_tile(tile, nest)
        yield _step("split", loop=pattern.feature, factors=(*outer, *inner))
    if nest.panel and nest.row:
        yield _step("split", loop=pattern.inner_row, factors=(None, tile.rows))
    outside = (pattern.row, nest.tile, nest.panel)
    inside = (pattern.position, pattern.inner_position, nest.row, nest.vector, nest.lane)
    yield _step("reorder", loops=tuple(loop for loop in (*outside, *inside) if loop))


def _in_tile(tile: Tile, nest: _Nest) -> tuple[int, ...]:
    """The extents of the loops over vectors and lanes."""
    return (tile.vectors, tile.lanes) if nest.vector else (tile.lanes,)


def _in_registers(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Iterator[Step]:
    """A buffer for the tile, which is copied by rows."""
    block, copy = pattern.block, f"{pattern.block}_{pattern.output}_local"
    holder = nest.panel or nest.tile or pattern.row
    yield _step("cache_write", block=block, buffer=pattern.output, scope="local")
    yield _step("reverse_compute_at", block=copy, loop=holder)
    yield _step("decompose_reduction", block=block, loop=pattern.position)
    loops = (pattern.inner_row, pattern.feature)
    if nest.lane and tile.rows > 1 and loops != tuple(sorted(loops, key=pattern.order.index)):
        yield _step("reorder", loops=tuple(f"{loop}_c" for loop in loops))


def _vectorized(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Iterator[Step]:
    """The lanes of the block, of its init and of its copy."""
    if not nest.lane:
        return
    copied = f"{pattern.feature}_c"
    if nest.lane != pattern.feature:
        yield _step("split", loop=copied, factors=_in_tile(tile, nest))
        copied = f"{copied}_1" if nest.vector else f"{copied}_0"
    for loop in (nest.lane, f"{nest.lane}_init", copied):
        yield _step("vectorize", loop=loop)


def _unrolled(pattern: BlockReduction, tile: Tile, nest: _Nest) -> Iterator[Step]:
    """The vectors and rows of a tile."""
    if nest.vector:
        for loop in (nest.vector, f"{nest.vector}_init", f"{pattern.feature}_c_0"):
            yield _step("unroll", loop=loop)
    if nest.row and tile.rows > 1:
        for loop in (nest.row, f"{nest.row}_init", f"{pattern.inner_row}_c"):
            yield _step("unroll", loop=loop)


def _parallel(pattern: BlockReduction, tile: Tile) -> Decision:
    vectors = tile.vectors * (_tiles(pattern, tile) or 1)
    work = (pattern.height or 1) * (pattern.width or 1) * vectors
    return parallel_rows(
        pattern.row,
        before=pattern.before,
        per_row=WORK_PER_ROW,
        vectors=max(1, work // FMAS_PER_VECTOR),
    )
