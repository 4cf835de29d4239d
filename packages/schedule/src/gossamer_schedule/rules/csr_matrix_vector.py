"""CSR times vector: a dot product per row, by row length.

Short rows run one element at a time, which a superscalar core overlaps from row to row; long rows
run in vectors of partial sums, which breaks the chain of dependent additions.
"""

from __future__ import annotations

from gossamer_ir.contracts import Schedule, Stats, Step, Target, Trace
from gossamer_schedule.rules.machine import grain
from gossamer_schedule.rules.patterns import SparseReduction

LONG_ROW = 32
"""Nonzeros per row from which vectors pay (measured: even at 30, 1.6 times faster at 60)."""

LANES = 8
"""Partial sums: the elements of the dense operand are gathered one by one, and more of them only
lengthen the rest of a row."""

WORK_PER_ROW = 4
"""What a row costs besides its nonzeros, in nonzeros."""


def csr_matrix_vector(
    pattern: SparseReduction, _target: Target, stats: Stats | None
) -> Schedule | None:
    """The schedule for a pattern without a feature loop; None for one with it."""
    if pattern.feature:
        return None
    is_long = stats is not None and stats.mean_row >= LONG_ROW
    return Schedule(
        loop=(
            *_in_register(pattern),
            *(_vectorized(pattern) if is_long else ()),
            _parallel(pattern),
        )
    )


def _in_register(pattern: SparseReduction) -> Trace:
    copy = f"{pattern.block}_{pattern.output}_local"
    return (
        Step("cache_write", {"block": pattern.block, "buffer": pattern.output, "scope": "local"}),
        Step("reverse_compute_at", {"block": copy, "loop": pattern.row}),
        Step("decompose_reduction", {"block": pattern.block, "loop": pattern.position}),
    )


def _vectorized(pattern: SparseReduction) -> Trace:
    return (
        Step("split", {"loop": pattern.position, "factors": (None, LANES)}),
        Step("vectorize", {"loop": f"{pattern.position}_1"}),
    )


def _parallel(pattern: SparseReduction) -> Step:
    weight = pattern.weight(WORK_PER_ROW)
    return Step("parallel", {"loop": pattern.row, "weight": weight, "grain": grain(1)})
