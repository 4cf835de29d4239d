"""A number per row (CSR times vector, row sums, segments of a ragged axis), by row length.

Short rows run one element at a time, which a superscalar core overlaps from row to row; long rows
run in vectors of partial sums, which breaks the chain of dependent additions.
"""

from __future__ import annotations

from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.machine import grain
from gossamer_schedule.rules.patterns import (
    SparseReduction,
    parallel_rows,
    sparse_reduction,
)

MIDDLE_ROW = 16
"""Nonzeros per row from which vectors pay, if what fills no vector is one masked vector: a loop over
it would end where no branch predictor expects it (measured: 1.5 times faster at 30)."""

LONG_ROW = 48
"""Nonzeros per row from which a scalar loop over the rest costs less than a masked gather (measured:
1.15 times faster at 60)."""

LANES = 8
"""Partial sums: the elements of the dense operand are gathered one by one, and more of them only
lengthen the rest of a row."""

WORK_PER_ROW = 4
"""What a row costs besides its nonzeros, in nonzeros."""


def reduction_over_fibres(module: Module, _target: Target, stats: Stats | None) -> Schedule | None:
    """The schedule for a reduction over fibres without a feature loop; None for anything else."""
    pattern = sparse_reduction(module)
    if pattern is None or pattern.feature:
        return None
    mean = stats.mean_row if stats is not None else 0.0
    vectors = _vectorized(pattern, mean) if mean >= MIDDLE_ROW else ()
    rows = parallel_rows(pattern, grain(1), per_row=WORK_PER_ROW)
    return Schedule(loop=(*_in_register(pattern), *vectors, rows))


def _in_register(pattern: SparseReduction) -> Trace:
    copy = f"{pattern.block}_{pattern.output}_local"
    return (
        Step("cache_write", {"block": pattern.block, "buffer": pattern.output, "scope": "local"}),
        Step("reverse_compute_at", {"block": copy, "loop": pattern.row}),
        Step("decompose_reduction", {"block": pattern.block, "loop": pattern.position}),
    )


def _vectorized(pattern: SparseReduction, mean: float) -> Trace:
    lanes: dict[str, Arg] = {"loop": f"{pattern.position}_1"}
    if mean < LONG_ROW:
        lanes["rest"] = "masked"
    split = Step("split", {"loop": pattern.position, "factors": (None, LANES)})
    return (split, Step("vectorize", lanes))
