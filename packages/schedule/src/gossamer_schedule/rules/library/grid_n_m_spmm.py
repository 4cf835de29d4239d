"""An N:M matrix times a dense one, on machines that run grids of threads.

Sparse tensor cores multiply, if the machine has an intrinsic for the dtype of the operands. It computes the
whole product, for any numbers of rows, columns and features: each block of threads has a tile of the result,
of one of the sizes that the machine has. Otherwise, each element of the result has a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_heuristics.n_m_tiles import USUAL_SIZE, NMTileChoice, ProductSizes, choose_n_m_tile
from gossamer_ir.nodes import Module
from gossamer_machine import Grid
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, n_m_operands
from gossamer_schedule.rules.decisions.grids.grid_threads import run_rows_and_features
from gossamer_schedule.rules.patterns.n_m_product import NMProduct, n_m_product
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder


@schedule_rule(
    pattern=(
        "a sum of products of a 2:4 or 1:2 matrix, or of a 4:8 matrix in pairs, all slots of which are used, "
        'and a dense one (`[I, G, J, K]`, "SRRS"; `[I, G, J, P, K]`, "SRRRS"), on a machine that runs grids '
        "of threads"
    ),
    programs="`matmul_24` (`cuda-mma-sp`)",
    schedule="the whole product by sparse tensor cores, in tiles that a model of bytes and operations "
    "chooses, or a thread for each element of the result",
    is_for_grids=True,
)
def grid_n_m_spmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such a product; None for any other program, or on a CPU."""
    grid = context.machine.grid
    product = None if grid is None else n_m_product(module)
    if grid is None or product is None or product.features == 0:
        return None
    trace = context.new_trace()
    reason = _reason_for_threads(product, [name for name, _ in context.machine.n_m_products])
    if reason is None:
        chosen = choose_n_m_tile(context.machine, product.operands, _sizes(product, context))
        assert chosen is not None, "the machine has an intrinsic for the operands"
        _multiply(trace, product, grid=grid, chosen=chosen)
    else:
        trace.reorder(product.row, product.feature, *product.terms)
        run_rows_and_features(
            trace, product.row, feature=product.feature, features=product.features, grid=grid
        )
        trace.decide("products by ordinary threads", reason)
    return PatternMatch(product.text, trace)


def _sizes(product: NMProduct, context: RuleContext) -> ProductSizes:
    """Return the sizes of a product, usual ones where they are unknown. All work is in proportion to the
    columns."""
    rows = product.rows or (None if context.stats is None else context.stats.rows)
    return ProductSizes(rows or USUAL_SIZE, USUAL_SIZE, product.features or USUAL_SIZE)


def _reason_for_threads(product: NMProduct, dtypes: Sequence[str]) -> str | None:
    """Return why no intrinsic computes a product; None if one does."""
    read = n_m_operands(product.operands)
    # Programs may multiply dtypes that no instruction does, such as int16.
    has_form = product.operands in dtypes and (read.pattern, read.sums) == (
        product.pattern,
        product.sums,
    )
    if not has_form:
        names = ", ".join(dict.fromkeys(dtypes)) or "no dtype"
        return (
            f"the machine multiplies matrices of {names} by sparse tensor cores, "
            f"{_patterns_in_words()} and others with 2:4, with sums of 32 bits, and these are "
            f"{product.operands} with {product.pattern} and sums in {product.sums}"
        )
    if product.features == 1:
        return "there is one feature, and a tile of sparse tensor cores has eight"
    return None


def _patterns_in_words() -> str:
    """Return the precisions whose instructions take another pattern than 2:4."""
    return ", ".join(
        f"those of {name} with the pattern {read.pattern}"
        for name, read in SPECIAL_OPERANDS.items()
    )


def _multiply(trace: TraceBuilder, product: NMProduct, *, grid: Grid, chosen: NMTileChoice) -> None:
    if product.has_init:
        init = trace.decompose_reduction(
            product.block, loop=product.row, elements=(product.row, product.feature)
        )
        run_rows_and_features(
            trace,
            init.loops[product.row],
            feature=init.loops[product.feature],
            features=product.features,
            grid=grid,
        )
    trace.sparse_tensorize(product.block, loop=product.row, intrinsic=chosen.intrinsic)
    cycles = ", ".join(f"{kind} {count}" for kind, count in chosen.cycles.items())
    trace.decide(
        f"the product by {chosen.intrinsic}",
        f"instructions of sparse tensor cores multiply tiles of {chosen.tile.rows} rows and "
        f"{chosen.tile.features} features; what does not fill a tile is zeros. Of the tiles of the machine, "
        f"the slowest of memory, cache, shared memory and operations takes the fewest cycles: {cycles}",
    )
