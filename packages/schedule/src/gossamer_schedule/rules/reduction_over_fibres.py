"""A number per row (CSR times vector, row sums, segments of a ragged axis), by row length.

Short rows run one term at a time, which a superscalar core overlaps from row to row; long rows run in
vectors of partial sums, which breaks the chain of dependent additions. Where terms lie one after the
other, so do short rows: one masked load holds them, and no branch tells their lengths apart.
"""

from __future__ import annotations

from gossamer_ir.contracts import Arg, Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.machine import grain, lanes_of
from gossamer_schedule.rules.patterns import (
    SparseReduction,
    parallel_rows,
    sparse_reduction,
)

MIDDLE_ROW = 16
"""Gathered terms per row from which vectors pay, if what fills no vector is one masked vector: a loop
over it would end where no branch predictor expects it (measured: 1.5 times faster at 30)."""

LONG_ROW = 48
"""Gathered terms per row from which a scalar loop over the rest costs less than a masked gather
(measured: 1.15 times faster at 60)."""

GATHERED = 8
"""Partial sums of gathered terms, which are loaded one by one: more only lengthen the rest of a row."""

SHORT_ROW = 4
"""Contiguous terms that rows of equal length may have at most for scalar code to be faster, as its
branches are predicted (measured: 2.5 times faster at 2)."""

VERY_LONG_ROW = 128
"""Contiguous terms per row from which several vectors of partial results hide their latency
(measured: 1.5 times faster at 512)."""

INDEPENDENT_VECTORS = 4
"""As many, for very long rows."""

WORK_PER_ROW = 4
"""What a row costs besides its terms, in terms."""


def reduction_over_fibres(module: Module, target: Target, stats: Stats | None) -> Schedule | None:
    """The schedule for a reduction over fibres without a feature loop; None for anything else."""
    pattern = sparse_reduction(module)
    if pattern is None or pattern.feature:
        return None
    vectors = _vectors(pattern, target, stats) if pattern.is_regular else ()
    rows = parallel_rows(pattern, grain(1), per_row=WORK_PER_ROW)
    return Schedule(loop=(*_in_register(pattern), *vectors, rows))


def _in_register(pattern: SparseReduction) -> Trace:
    copy = f"{pattern.block}_{pattern.output}_local"
    return (
        Step("cache_write", {"block": pattern.block, "buffer": pattern.output, "scope": "local"}),
        Step("reverse_compute_at", {"block": copy, "loop": pattern.row}),
        Step("decompose_reduction", {"block": pattern.block, "loop": pattern.position}),
    )


def _vectors(pattern: SparseReduction, target: Target, stats: Stats | None) -> Trace:
    if pattern.is_contiguous:
        return _contiguous(pattern, target, stats)
    return _gathered(pattern, stats)


def _gathered(pattern: SparseReduction, stats: Stats | None) -> Trace:
    mean = _mean(pattern, stats) or 0.0
    if mean < MIDDLE_ROW:
        return ()
    return _vectorized(pattern, GATHERED, rest="masked" if mean < LONG_ROW else "scalar")


def _contiguous(pattern: SparseReduction, target: Target, stats: Stats | None) -> Trace:
    longest = pattern.width if stats is None else stats.longest_row
    if longest is not None and longest <= SHORT_ROW:
        return ()
    is_very_long = (_mean(pattern, stats) or 0.0) >= VERY_LONG_ROW
    lanes = lanes_of(target, pattern.dtype) * (INDEPENDENT_VECTORS if is_very_long else 1)
    return _vectorized(pattern, lanes, rest="masked")


def _mean(pattern: SparseReduction, stats: Stats | None) -> float | None:
    """The terms of a row, None where nothing is known of the data."""
    return pattern.width if stats is None else stats.mean_row


def _vectorized(pattern: SparseReduction, lanes: int, *, rest: str) -> Trace:
    inner: dict[str, Arg] = {"loop": f"{pattern.position}_1"}
    if rest != "scalar":
        inner["rest"] = rest
    split = Step("split", {"loop": pattern.position, "factors": (None, lanes)})
    return (split, Step("vectorize", inner))
