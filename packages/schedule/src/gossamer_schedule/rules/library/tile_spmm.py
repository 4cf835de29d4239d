"""Column tiles times dense: a tile of the dense operand stays in a cache while rows select from it.

Rows run in parallel, in panels, and so do the feature tiles of a panel if there are many. For each feature
tile and each column tile, the rows of the dense operand that belong to the column tile are packed into a
buffer that fits the private cache, at aligned addresses. Each row of the panel then sums its products with
packed rows in registers, and adds the sum to the output.
This is the loop order of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (ACM TOMS
34, 2008), with a sparse left operand.
"""

from __future__ import annotations

import msgspec

from gossamer_heuristics.column_tiles import (
    MAX_PACKED_VECTORS,
    PACKED_BYTES,
    SHARED_TILES,
    column_tiling,
    panel_rows,
)
from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS, DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.decisions.gather_tiling import tiles_of
from gossamer_schedule.rules.decisions.parallel_rows import grain
from gossamer_schedule.rules.decisions.tiles_in_vectors import run_tile_in_vectors
from gossamer_schedule.rules.decisions.verdict import (
    Verdict,
    profitable_verdict,
    unprofitable_verdict,
)
from gossamer_schedule.rules.patterns.tiled_reduction import TiledReduction, tiled_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import (
    TileNest,
    combine_in_registers,
    copy_in_vectors,
    partial_tile,
)
from gossamer_schedule.rules.steps.trace_builder import PartialResults, TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles, tiles_holding
from gossamer_support.message_texts import amount


class _Tiling(msgspec.Struct, frozen=True):
    """The tiles of features, the rows of a panel, whether the rows that a column tile selects are packed, and
    whether threads share the tiles of a panel."""

    features: VectorTiles
    panel: int
    packing: Verdict
    has_shared_panels: bool = False


class _TileLoops(msgspec.Struct, frozen=True):
    """The loop over panels, the loop over the rows of a panel, and the loops over features."""

    panel: str
    row: str
    features: VectorLoops


@schedule_rule(
    pattern='`out[i, k] = out[i, k] + ...` over tile, row, fiber and features (`[T, I, J, K]`, "RSRS")',
    programs="a matrix in tiles of columns (`tiled_csr`) times a matrix",
    schedule=(
        "panels of rows; rows of the dense operand are packed for each tile, and the sums of a row are in "
        "vector registers"
    ),
)
def tile_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a sum over column tiles; None for any other program."""
    pattern = tiled_reduction(module)
    if pattern is None:
        return None
    trace = context.new_trace()
    for version, tiling in _versions(trace, pattern, context=context):
        _schedule_version(trace, version, tiling=tiling, stats=context.stats)
    return PatternMatch(pattern.text, trace)


def _versions(
    trace: TraceBuilder, pattern: TiledReduction, *, context: RuleContext
) -> list[tuple[TiledReduction, _Tiling]]:
    """Return the nests with their tiles: two, for the shortest scalable vectors and for longer ones, if the
    vectors may have either length."""
    machine = context.machine
    if not machine.is_scalable:
        return [(pattern, _fixed_tiling(pattern, context))]
    if machine.min_vector_bits > VSCALE_UNIT_BITS:
        return [(pattern, _scalable_tiling(pattern, context))]
    names = (
        pattern.column_tile,
        pattern.row,
        pattern.position,
        pattern.feature,
        pattern.block,
    )
    versions = trace.loop_version(names[0], condition="T.vscale() <= 1", inside=names[1:])
    trace.decide(
        f"a version for vectors of {VSCALE_UNIT_BITS} bits, and one for longer ones",
        "packed rows take fewer instructions only if the length of vectors is known",
    )
    short, long = (
        pattern.with_names(dict(zip(names, version, strict=True))) for version in versions
    )
    return [(short, _fixed_tiling(short, context)), (long, _scalable_tiling(long, context))]


def _schedule_version(
    trace: TraceBuilder, pattern: TiledReduction, *, tiling: _Tiling, stats: Stats | None
) -> None:
    """Schedule one of the nests."""
    partial = trace.rfactor(
        pattern.block,
        buffer=pattern.output,
        loop=pattern.column_tile,
        elements=(pattern.row, pattern.feature),
    )
    trace.decide(
        f"partial results for each row {pattern.row} of a tile {pattern.column_tile}",
        "they stay in registers, and are combined with the output once for each tile",
    )
    loops = _order_loops(trace, pattern, tiling=tiling, partial=partial)
    _pack_rows(trace, pattern, tiling=tiling, partial=partial)
    _run_in_vectors(trace, pattern, tiling=tiling, partial=partial, loops=loops)
    _run_panels_in_parallel(trace, tiling, loops=loops, stats=stats)


def _fixed_tiling(pattern: TiledReduction, context: RuleContext) -> _Tiling:
    """Return the fewest feature tiles, all of the same size, and the rows of a panel."""
    lanes = context.machine.lanes(pattern.dtype, holding=pattern.features)
    tiling = column_tiling(
        -(-pattern.features // lanes),
        vector_bytes=lanes * _column_bytes(pattern),
        rows=_rows(context),
    )
    features = tiles_holding(pattern.features, vectors=tiling.vectors, lanes=lanes)
    return _Tiling(
        features,
        tiling.panel,
        _packing_verdict(pattern, features, fits=tiling.is_packed),
        has_shared_panels=tiling.feature_tiles >= SHARED_TILES,
    )


def _scalable_tiling(pattern: TiledReduction, context: RuleContext) -> _Tiling:
    """Return tiles of scalable vectors, whose rows are read where they are.

    Counted with 512 rows of 8 elements in a tile and 128 features at 128, 256, 512, 1024 and 2048 bits: 183,
    92, 46, 23 and 23 instructions for an element, and 111 in fixed lanes of the least length.
    """
    features, _ = tiles_of(
        pattern.features,
        pattern.dtype,
        machine=context.machine,
        is_aligned=False,
        is_prefetched=False,
    )
    why = "vectors are scalable, so that the size of packed rows and their alignment are unknown"
    return _Tiling(features, panel_rows(_rows(context)), unprofitable_verdict(why))


def _rows(context: RuleContext) -> int | None:
    return None if context.stats is None else context.stats.rows


def _packing_verdict(pattern: TiledReduction, features: VectorTiles, *, fits: bool) -> Verdict:
    """Return the verdict on packing, which pays if one vector of each row of a column tile fits."""
    vector_bytes = features.lanes * _column_bytes(pattern)
    if fits:
        return profitable_verdict(
            f"their {_kilobytes(features.vectors * vector_bytes)} stay in the private cache, at aligned "
            "addresses, while the rows of a panel select from them"
        )
    rows = amount(pattern.tile_columns, "row")
    return unprofitable_verdict(
        f"a vector of each of the {rows} that a tile selects takes {_kilobytes(vector_bytes)} in all; "
        f"packed rows have at most {_kilobytes(PACKED_BYTES)}"
    )


def _column_bytes(pattern: TiledReduction) -> int:
    """Return the bytes of one feature in the rows of a column tile; a bool takes a byte of memory."""
    return pattern.tile_columns * max(8, DType.parse(pattern.operand_dtype).bits) // 8


def _order_loops(
    trace: TraceBuilder, pattern: TiledReduction, *, tiling: _Tiling, partial: PartialResults
) -> _TileLoops:
    """Order the loops as panel, feature tile, column tile, row, position, vector, lane."""
    panel, row = trace.split(pattern.row, factors=(None, tiling.panel))
    features = trace.split_in_vectors(pattern.feature, tiling.features)
    # The rows of a panel inside, since all of them use the rows that are packed for a tile.
    outside = (panel, features.tile, pattern.column_tile)
    trace.reorder(*outside, row, pattern.position, features.vector, features.lane)
    combine_in_registers(trace, pattern, partial, holder=row)
    trace.decide(
        f"panels of {amount(tiling.panel, 'row')}, features in {tiling.features.text}",
        "all rows of a panel use the rows that a tile of columns selects; a tile of features has at most "
        f"{amount(MAX_PACKED_VECTORS, 'vector')}, and {_kilobytes(PACKED_BYTES)} in these rows",
    )
    return _TileLoops(panel, row, features)


def _pack_rows(
    trace: TraceBuilder, pattern: TiledReduction, *, tiling: _Tiling, partial: PartialResults
) -> None:
    """Pack the rows that a column tile selects, if that pays."""
    if not tiling.packing.is_profitable:
        trace.decide(f"rows of {pattern.operand} not packed", tiling.packing.why)
        return
    copy_in_vectors(
        trace,
        partial.block,
        tiling.features,
        buffer=pattern.operand,
        loop=pattern.column_tile,
        scope="local",
        ndim=2,
    )
    rows = amount(pattern.tile_columns, "row")
    trace.decide(
        f"{rows} of {pattern.operand} packed for each tile {pattern.column_tile}",
        tiling.packing.why,
    )


def _kilobytes(size: int) -> str:
    return f"{size / 2**10:.3g} KB"


def _run_in_vectors(
    trace: TraceBuilder,
    pattern: TiledReduction,
    *,
    tiling: _Tiling,
    partial: PartialResults,
    loops: _TileLoops,
) -> None:
    """Vectorize the lanes and unroll the vectors of sums, of their init and of their copy. One feature is not
    a vector."""
    if tiling.features.lanes > 1:
        nests = partial_tile(
            trace,
            pattern,
            tiling.features,
            partial=partial,
            update=TileNest(None, loops.features),
            reduction=pattern.position,
        )
        what = "features in lanes, and the vectors of a tile unrolled"
        run_tile_in_vectors(trace, nests.all, what=what)


def _run_panels_in_parallel(
    trace: TraceBuilder, tiling: _Tiling, *, loops: _TileLoops, stats: Stats | None
) -> None:
    """Run panels in parallel, or their feature tiles, as few for a thread as pay for it."""
    # For unknown data the least work of a row, so that no thread is woken for too little.
    per_row = 1.0 if stats is None else max(stats.mean_row, 1.0)
    rows = int(tiling.panel * per_row)
    tile = loops.features.tile
    if tile is not None and tiling.has_shared_panels:
        work = rows * tiling.features.single_tile.work
        outer, what, why = (
            trace.fuse(loops.panel, tile),
            "feature tiles of panels",
            "a feature tile",
        )
    else:
        work = rows * tiling.features.work
        outer, what, why = loops.panel, "panels", "a panel"
    least = grain(work)
    trace.record.parallel(loop=outer, grain=least)
    trace.decide(
        f"{what} in parallel, {least} or more for a thread",
        f"{why} costs {amount(work, 'vector')} of work",
    )
