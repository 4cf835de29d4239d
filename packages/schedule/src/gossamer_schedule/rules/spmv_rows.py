"""A number per row (CSR times vector, row sums, segments of a ragged axis), by row length.

Short rows run one term at a time, which a superscalar core overlaps from row to row; long rows run in
vectors of partial sums, which breaks the chain of dependent additions. Where terms lie one after the
other, so do short rows: one masked load holds them, and no branch tells their lengths apart.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Arg, Decision, ScheduleReport, Stats, Step, Target
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.cost.machine import lanes_of
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.recognise.row_reduction import SparseReduction, sparse_reduction

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


def spmv_rows(
    module: Module, target: Target, stats: Stats | None, *, short_row: float = 0.0
) -> ScheduleReport | None:
    """The schedule for a reduction over fibres without a feature loop; None for anything else. One
    contiguous term at a time also where rows have no more than `short_row` on average."""
    pattern = sparse_reduction(module)
    if pattern is None or pattern.feature:
        return None
    rows = parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=1)
    vectors = _vectors(pattern, target, stats)
    mean = _mean(pattern, stats)
    if pattern.is_contiguous and mean is not None and mean <= short_row:
        vectors = _scalar(f"rows have {mean:.3g} terms on average; vectors pay above {short_row}")
    decisions = (_in_register(pattern), vectors, rows)
    return ScheduleReport("spmv_rows", pattern.text, decisions)


def _in_register(pattern: SparseReduction) -> Decision:
    copy = f"{pattern.block}_{pattern.output}_local"
    return Decision(
        "a row's result in a register",
        f"all terms of row {pattern.row} follow each other, so memory is written once for each row",
        (
            Step(
                "cache_write", {"block": pattern.block, "buffer": pattern.output, "scope": "local"}
            ),
            Step("reverse_compute_at", {"block": copy, "loop": pattern.row}),
            Step("decompose_reduction", {"block": pattern.block, "loop": pattern.position}),
        ),
    )


def _vectors(pattern: SparseReduction, target: Target, stats: Stats | None) -> Decision:
    if not pattern.is_regular:
        return _scalar("an operand is read, or terms are combined, as vectors cannot do it")
    if pattern.is_contiguous:
        return _contiguous(pattern, target, stats)
    return _gathered(pattern, stats)


def _scalar(why: str) -> Decision:
    return Decision("one term at a time", why)


def _gathered(pattern: SparseReduction, stats: Stats | None) -> Decision:
    mean = _mean(pattern, stats)
    if mean is None:
        return _scalar("nothing is known of the length of rows, and short ones lose by vectors")
    if mean < MIDDLE_ROW:
        return _scalar(
            f"rows have {mean:.3g} terms on average, and gathers pay from {MIDDLE_ROW}; short rows "
            "overlap in the processor"
        )
    rest, why = "masked", f"fewer than {LONG_ROW}: what fills no vector is one masked gather"
    if mean >= LONG_ROW:
        rest, why = "scalar", f"{LONG_ROW} or more: a loop over what fills no vector costs little"
    return _vectorized(
        pattern, GATHERED, rest=rest, why=f"rows have {mean:.3g} terms on average, {why}"
    )


def _contiguous(pattern: SparseReduction, target: Target, stats: Stats | None) -> Decision:
    longest = pattern.width if stats is None else stats.longest_row
    if longest is not None and longest <= SHORT_ROW:
        return _scalar(
            f"no row has more than {longest} terms, and up to {SHORT_ROW} scalar code is faster"
        )
    lanes, why = lanes_of(target, pattern.dtype), "one masked load holds a short row or the rest"
    if (_mean(pattern, stats) or 0.0) >= VERY_LONG_ROW:
        lanes *= INDEPENDENT_VECTORS
        why = f"rows have {VERY_LONG_ROW} terms or more on average, and {INDEPENDENT_VECTORS} "
        why += "independent vectors hide the latency of their additions"
    return _vectorized(pattern, lanes, rest="masked", why=f"terms lie one after the other; {why}")


def _mean(pattern: SparseReduction, stats: Stats | None) -> float | None:
    """The terms of a row, None where nothing is known of the data."""
    return pattern.width if stats is None else stats.mean_row


def _vectorized(pattern: SparseReduction, lanes: int, *, rest: str, why: str) -> Decision:
    inner: dict[str, Arg] = {"loop": f"{pattern.position}_1"}
    if rest != "scalar":
        inner["rest"] = rest
    split = Step("split", {"loop": pattern.position, "factors": (None, lanes)})
    return Decision(
        f"{lanes} partial results in lanes, the rest {rest}", why, (split, Step("vectorize", inner))
    )
