"""An N:M matrix times a dense one, on CPUs: a tile of features of a row in registers."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.patterns.n_m_product import NMProduct, n_m_product
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.register_tiles import TileNest, accumulate_tile
from gossamer_schedule.rules.steps.vector_loops import VectorTiles, tiles_holding

TILE_VECTORS = 8
"""Maximum vectors of a tile: enough chains of multiply-adds, and registers are left for the dense operand."""


@schedule_rule(
    pattern=(
        "a sum of products of a 2:4 or 1:2 matrix, or of a 4:8 matrix in pairs, all slots of which are used, "
        'and a dense one, neither transposed (`[I, G, J, K]`, "SRRS"; `[I, G, J, P, K]`, "SRRRS"), on a CPU'
    ),
    programs="`matmul_24`",
    schedule="rows in parallel, a tile of features in vector registers, the slots of a group unrolled",
)
def n_m_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such a product; None for any other program."""
    product = n_m_product(module)
    if product is None or not product.is_row_major or product.features == 0:
        return None
    trace, tiles = context.new_trace(), _feature_tiles(product, context.machine)
    loops = trace.split_in_vectors(product.feature, tiles)
    trace.reorder(product.row, loops.tile, *product.terms, loops.vector, loops.lane)
    nests = accumulate_tile(
        trace,
        product,
        tiles,
        update=TileNest(None, loops),
        holder=loops.tile or product.row,
        reduction=product.group,
    )
    trace.decide(
        f"features in {tiles.text}, in registers during the loop over groups",
        "an element of the sparse matrix is used for all of them, and the result is written once",
    )
    trace.vectorize(*(nest.features.lane for nest in nests.all))
    _, *unrolled = product.terms
    trace.unroll(*(nest.features.vector for nest in nests.all), *unrolled)
    trace.decide("the slots of a group unrolled", "all slots are used, so their number is constant")
    run_rows_in_parallel(
        trace, product.row, before=None, vectors=product.group_elements * tiles.vectors
    )
    return PatternMatch(product.text, trace)


def _feature_tiles(product: NMProduct, machine: Machine) -> VectorTiles:
    if machine.is_scalable:
        lanes = machine.unit_lanes(product.sums)
        return VectorTiles(None, TILE_VECTORS // 2, lanes, is_exact=False, is_scalable=True)
    lanes = machine.lanes(product.sums, holding=product.features)
    if product.features is None:
        return tiles_holding(None, vectors=TILE_VECTORS // 2, lanes=lanes)
    vectors = min(TILE_VECTORS, -(-product.features // lanes))
    return tiles_holding(product.features, vectors=vectors, lanes=lanes)
