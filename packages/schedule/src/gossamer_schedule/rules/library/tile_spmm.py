"""Column tiles times dense: a tile of the dense operand stays in a cache while rows select from it.

Rows run in parallel, in panels. For each feature tile and each column tile, the rows of the dense operand
that belong to the column tile are packed into a buffer that fits the private cache, at aligned addresses.
Each row of the panel then sums its products with packed rows in registers, and adds the sum to the output.
This is the loop order of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (ACM TOMS
34, 2008), with a sparse left operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Decision, Stats, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.definition.made_names import copy_name
from gossamer_schedule.rules.cost.thread_work import grain
from gossamer_schedule.rules.patterns.tiled_reduction import TiledReduction, tiled_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import PartialSums, TraceBuilder, VectorLoops

MOST_VECTORS = 8
"""Maximum number of vectors of a feature tile (measured on pruned weights with 512 features: tiles of 4
and of 8 vectors are equal within 5 percent, and 16 vectors do not stay in the private cache)."""

PACKED_BYTES = 64 << 10
"""Maximum size of the packed rows. They must leave room in the private cache for the matrix and the output,
and a larger buffer might be allocated anew for each column tile, since it does not fit the stack."""

LEAST_PANEL, LARGEST_PANEL = 64, 512
"""Limits of the rows of a panel. The dense operand is packed once for each panel (measured: panels of 128
rows are 1.05 to 1.4 times slower than panels of 512)."""

PANELS = 2
"""Minimum number of panels of a matrix with enough rows, so that two threads have one each."""


class _Tiling(NamedTuple):
    """The feature tiles, the vectors of each, the lanes of a vector, and the rows of a panel.

    `is_exact` is true if feature tiles have no other lanes than those of features. `is_packed` is false if
    one vector of each row of a column tile exceeds the limit.
    """

    feature_tiles: int
    vectors: int
    lanes: int
    panel: int
    is_exact: bool
    is_packed: bool


class _Loops(NamedTuple):
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
def tile_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a sum over column tiles; None for any other program."""
    pattern = tiled_reduction(module)
    if pattern is None:
        return None
    tiling = _tiling(pattern, hardware_params(target), context.stats)
    summing = TraceBuilder()
    partial = summing.rfactor(pattern.block, buffer=pattern.output, loop=pattern.column_tile)
    in_panels, loops = _panels(pattern, tiling, partial)
    packed, columns = _packed(pattern, tiling, partial)
    decisions = (
        Decision(
            f"partial results for each row {pattern.row} of a tile {pattern.column_tile}",
            "they stay in registers, and are combined with the output once for each tile",
            summing.steps,
        ),
        in_panels,
        packed,
        *_in_vectors(pattern, tiling, loops=loops, partial=partial, columns=columns),
        _parallel(pattern, tiling, loops, context.stats),
    )
    return PatternMatch(pattern.text, decisions)


def _tiling(pattern: TiledReduction, hardware: HardwareParams, stats: Stats | None) -> _Tiling:
    """Return the fewest feature tiles, all of the same size, and the rows of a panel."""
    lanes = hardware.lanes(pattern.dtype, holding=pattern.features)
    fitting = PACKED_BYTES // (lanes * _column_bytes(pattern))
    most = min(fitting or MOST_VECTORS, MOST_VECTORS)
    vectors = -(-pattern.features // lanes)
    feature_tiles = -(-vectors // most)
    per_tile = -(-vectors // feature_tiles)
    rows = LARGEST_PANEL if stats is None else stats.rows // PANELS
    return _Tiling(
        feature_tiles,
        per_tile,
        lanes,
        panel=min(max(rows, LEAST_PANEL), LARGEST_PANEL),
        is_exact=feature_tiles * per_tile * lanes == pattern.features,
        is_packed=fitting > 0,
    )


def _column_bytes(pattern: TiledReduction) -> int:
    """Return the bytes of one feature in the rows of a column tile; a bool takes a byte of memory."""
    return pattern.tile_columns * max(8, DType.parse(pattern.operand_dtype).bits) // 8


def _panels(
    pattern: TiledReduction, tiling: _Tiling, partial: PartialSums
) -> tuple[Decision, _Loops]:
    """Order the loops as panel, feature tile, column tile, row, position, vector, lane."""
    trace = TraceBuilder()
    panel, row = trace.split(pattern.row, factors=(None, tiling.panel))
    features = _split_features(trace, pattern.feature, tiling, tiles=tiling.feature_tiles)
    outside = (panel, features.tile, pattern.column_tile)
    inside = (row, pattern.position, features.vector, features.lane)
    trace.add("reorder", loops=tuple(loop for loop in (*outside, *inside) if loop))
    trace.add("reverse_compute_at", block=pattern.block, loop=row)
    trace.add("set_scope", buffer=partial.buffer, scope="local")
    decision = Decision(
        f"panels of {counted(tiling.panel, 'row')}, features in {counted(tiling.feature_tiles, 'tile')} of "
        f"{counted(tiling.vectors, 'vector')} of {counted(tiling.lanes, 'lane')}",
        "all rows of a panel use the rows that a tile of columns selects; a tile of features has at most "
        f"{counted(MOST_VECTORS, 'vector')}, and {_kilobytes(PACKED_BYTES)} in these rows",
        trace.steps,
    )
    return decision, _Loops(panel, row, features)


def _split_features(
    trace: TraceBuilder, loop: str, tiling: _Tiling, *, tiles: int = 1
) -> VectorLoops:
    is_exact = tiling.is_exact and tiling.feature_tiles == tiles
    return trace.split_in_vectors(
        loop, tiles=tiles, vectors=tiling.vectors, lanes=tiling.lanes, exact=is_exact
    )


def _packed(pattern: TiledReduction, tiling: _Tiling, partial: PartialSums) -> tuple[Decision, str]:
    """Pack the rows that a column tile selects. Return the decision, and the loop over the features of a row
    ("": no rows are packed)."""
    rows = counted(pattern.tile_columns, "row")
    of_vector = tiling.lanes * _column_bytes(pattern)
    if not tiling.is_packed:
        why = (
            f"a vector of each of the {rows} that a tile selects takes {_kilobytes(of_vector)} in all; "
            f"packed rows have at most {_kilobytes(PACKED_BYTES)}"
        )
        return Decision(f"rows of {pattern.operand} not packed", why), ""
    trace = TraceBuilder()
    copy = trace.cache_region(
        partial.block, buffer=pattern.operand, loop=pattern.column_tile, scope="local", dimensions=2
    )
    decision = Decision(
        f"{rows} of {pattern.operand} packed for each tile {pattern.column_tile}",
        f"their {_kilobytes(tiling.vectors * of_vector)} stay in the private cache, at aligned addresses, "
        "while the rows of a panel select from them",
        trace.steps,
    )
    return decision, copy.loops[-1]


def _kilobytes(size: int) -> str:
    return f"{size / 2**10:.3g} KB"


def _in_vectors(
    pattern: TiledReduction,
    tiling: _Tiling,
    *,
    loops: _Loops,
    partial: PartialSums,
    columns: str,
) -> Iterator[Decision]:
    """Vectorize the lanes and unroll the vectors of sums, of their init, of their copy, and of packing."""
    # One feature is neither a vector nor a loop of a copied region.
    if tiling.lanes == 1:
        return
    trace = TraceBuilder()
    features = loops.features
    inside = [loop for loop in (features.vector, features.lane) if loop]
    init = trace.decompose_reduction(partial.block, loop=pattern.position, elements=inside)
    nests = [
        features,
        VectorLoops("", init.loops.get(features.vector, ""), init.loops[features.lane]),
        _split_features(trace, copy_name(pattern.feature), tiling),
    ]
    if columns:
        nests.append(_split_features(trace, columns, tiling))
    for nest in nests:
        trace.add("vectorize", loop=nest.lane)
        if nest.vector:
            trace.add("unroll", loop=nest.vector)
    yield Decision(
        "features in lanes, and the vectors of a tile unrolled",
        "features are contiguous, and registers are assigned at compile time",
        trace.steps,
    )


def _parallel(
    pattern: TiledReduction, tiling: _Tiling, loops: _Loops, stats: Stats | None
) -> Decision:
    """Run panels in parallel, as few for a thread as pay for it."""
    per_row = 1.0 if stats is None else max(stats.mean_row, 1.0)
    work = int(tiling.panel * per_row) * tiling.feature_tiles * tiling.vectors
    least = grain(work)
    trace = TraceBuilder()
    trace.add("parallel", loop=loops.panel, grain=least)
    return Decision(
        f"panels in parallel, {least} or more for a thread",
        f"a panel costs {counted(work, 'vector')} of work",
        trace.steps,
    )
