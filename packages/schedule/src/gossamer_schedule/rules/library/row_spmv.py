"""One number per row (CSR times vector, row sums, segments of a ragged axis), by row length.

Short rows run one term at a time: a superscalar core overlaps the terms of several rows. Long rows run in
vectors of partial sums, which breaks the chain of dependent additions. Rows of contiguous terms use vectors
even if they are short: one masked load reads a row, without a branch that depends on its length. Where
gathers are fast enough, several short rows are lanes of a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gossamer_heuristics.row_lengths import SHORT_ROW
from gossamer_ir.core.dtypes import DType
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Function, Iteration, Module
from gossamer_machine.machine import Machine
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.decisions.equal_rows import equal_rows_verdict, run_equal_rows
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.prefetching.element_prefetching import (
    element_prefetching_verdict,
    prefetch_elements,
)
from gossamer_schedule.rules.decisions.rows_in_lanes import (
    may_run_in_lanes,
    rows_in_lanes_verdict,
    run_rows_in_lanes,
)
from gossamer_schedule.rules.decisions.scalable_vectors.row_vector_groups import (
    row_vector_groups,
    versions_of_rows,
)
from gossamer_schedule.rules.decisions.scalable_vectors.unrolled_rows import (
    may_unroll_rows,
    run_groups_in_parallel,
    whole_groups_and_rest,
)
from gossamer_schedule.rules.decisions.verdict import Verdict, unprofitable_verdict
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, row_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

if TYPE_CHECKING:
    from gossamer_schedule.primitives.loops.vectorize import Remainder

MIN_GATHERED = {"fast": 3, "moderate": 4, "slow": 16}
"""Minimum mean number of gathered terms per row for vectors to pay, by the speed of gathers.

Fast (measured on Emerald Rapids): 1.3 to 2.2 times faster than scalar code at 4 to 7 terms, 0.8 at 2.
Moderate (measured on Zen 4, where elements are loaded one by one): 1.3 to 1.8 times at 4.5 to 6 terms, 0.9 to
1.4 at 4 and 7, 0.8 at 2."""

PREDICTED_ROWS = 1 << 15
"""Number of rows, exclusive, whose ends a processor predicts if it multiplies the same matrix again.

Measured on Zen 4 after 300 calls: vectors take 1.4 times as long as scalar code for 19,717 rows of 4.5 terms,
0.65 times for 65,536 rows of 6.
"""

SIMILAR_ROWS = 4
"""Maximum length of the longest row, in mean rows, for rows of similar lengths. The lengths are those of
stats that are rounded to classes, by which rules schedule."""

FEW_TERMS = 6
"""Maximum mean number of terms, exclusive, for vectors of half the lanes where elements are loaded one by one
(measured on Zen 4: 1.05 to 1.35 times faster with 4 lanes at 4.5 terms, equal at 6, 0.9 at 7)."""

FEW_NARROW_TERMS = 40
"""The same without mask registers, where the mask of a remainder is a vector, too (measured on Zen 3 in
float32: 1.12 times faster with 4 lanes at 29 terms, 1.0 to 1.1 at 30, 0.97 to 1.04 at 46, 1.0 at 59 and 80,
0.92 at 102 and 461)."""

GATHERED_LANES = 8
"""Partial sums of gathered terms. Gathers load one element at a time, so that more lanes only lengthen the
remainder of a row (measured with fast gathers: 16 lanes are 0.85 to 1.2 times as fast). Nor is there another
limit than gathers, which take 0.72 cycles for an element from the first-level cache, and rows 0.75 to 0.85
(measured on Emerald Rapids on 10 matrices: two vectors of partial sums are 0.87 to 1.1 times as fast, with
prefetched elements 0.84 to 1.1; scalar code takes 1.3 cycles)."""

VERY_LONG_ROW = 128
"""Minimum mean number of contiguous terms per row for several vectors of partial sums, which hide the latency
of additions (measured: 1.5 times faster at 512 terms)."""

INDEPENDENT_VECTORS = 4
"""Vectors of partial sums for very long rows."""


@schedule_rule(
    pattern='`out[i] = out[i] + ...` over row and fiber (`[I, J]`, "SR")',
    programs="the same times a vector; sums and extrema of rows and segments",
    schedule=(
        "a row's result in a register: one term at a time, or by vectors of partial results; several short "
        "rows in the lanes of a vector; three rows side by side if many have equal columns"
    ),
    handles_siblings=True,
)
def row_spmv(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over fibers without a feature loop; None for any other program.

    Contiguous terms of a sibling also run one at a time if its rows are short.
    """
    program, pattern = single_iteration(module), row_reduction(module)
    if program is None or pattern is None or pattern.feature:
        return None
    trace = context.new_trace()
    in_lanes = rows_in_lanes_verdict(context.machine, context.stats)
    if (
        in_lanes.is_profitable
        and not context.is_sibling
        and may_run_in_lanes(*program, pattern=pattern)
    ):
        run_rows_in_lanes(trace, pattern, machine=context.machine, verdict=in_lanes)
    else:
        _run_row_by_row(trace, pattern, program=program, context=context)
    return PatternMatch(pattern.text, trace)


def _run_row_by_row(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    program: tuple[Function, Iteration],
    context: RuleContext,
) -> None:
    """Run the terms of a row in lanes if they are enough, and in groups of vectors if they fill one. Rows
    that have the same columns run side by side."""
    chosen = _lanes(pattern, context)
    # Siblings share the loop over rows, of which there is one version then.
    if isinstance(chosen.lanes, str) and not context.is_sibling:
        _run_scalable_rows(trace, pattern, chosen=chosen, context=context)
        return
    prefetching = _element_prefetching_verdict(pattern, context, chosen=chosen)
    machine, stats = context.machine, context.stats
    equal_rows = equal_rows_verdict(program, pattern, machine=machine, stats=stats)
    if (
        equal_rows.is_profitable
        and isinstance(chosen.lanes, int)
        and chosen.lanes > 1
        and not context.is_sibling
    ):
        run_equal_rows(
            trace, pattern, lanes=chosen.lanes, verdict=equal_rows, prefetching=prefetching
        )
        return
    _accumulate_rows(trace, pattern)
    _run_terms(trace, pattern, chosen=chosen, prefetching=prefetching)
    run_rows_in_parallel(trace, pattern.row, before=pattern.before, vectors=1)


def _run_scalable_rows(
    trace: TraceBuilder, pattern: RowReduction, *, chosen: _Lanes, context: RuleContext
) -> None:
    """Run terms in scalable vectors, in groups of these where they fill one, and rows in groups."""
    groups = row_vector_groups(pattern, context.machine, mean=_mean_row(pattern, context.stats))
    versions = versions_of_rows(trace, pattern, groups=groups)
    # First in all versions: names that one of them frees later are not taken by another.
    for version, _ in versions:
        _accumulate_rows(trace, version)
    for version, vectors in versions:
        if may_unroll_rows(version):
            whole, rest = whole_groups_and_rest(trace, version)
            _run_terms(trace, whole, chosen=chosen, vectors=vectors)
            _run_terms(trace, rest, chosen=chosen)
            run_groups_in_parallel(trace, whole)
        else:
            _run_terms(trace, version, chosen=chosen, vectors=vectors)
            run_rows_in_parallel(trace, version.row, before=version.before, vectors=1)


def _accumulate_rows(trace: TraceBuilder, pattern: RowReduction) -> None:
    """Keep the result of a row in a register."""
    trace.accumulate_locally(
        pattern.block, buffer=pattern.output, holder=pattern.row, reduction=pattern.reduction
    )
    trace.decide(
        "a row's result in a register",
        f"the terms of row {pattern.row} are consecutive iterations, so memory is written once per row",
    )


def _run_terms(
    trace: TraceBuilder,
    pattern: RowReduction,
    *,
    chosen: _Lanes,
    vectors: int = 1,
    prefetching: Verdict | None = None,
) -> None:
    """Run the terms of a row one at a time, in lanes, or in groups of vectors."""
    if vectors > 1:
        _, vector, lane = trace.split(pattern.position, factors=(None, vectors, chosen.lanes))
        trace.vectorize(lane, remainder=chosen.remainder)
        trace.unroll(vector)
        trace.decide(
            f"{chosen.lanes} partial results in lanes, {vectors} vectors at a time, the remainder "
            f"{chosen.remainder}",
            "the vectors of a group need no masks, and share the instructions of the loop",
        )
        return
    if chosen.lanes != 1:
        _run_in_lanes(trace, pattern, chosen=chosen, prefetching=prefetching)
    trace.decide(chosen.what, chosen.why)


def _run_in_lanes(
    trace: TraceBuilder, pattern: RowReduction, *, chosen: _Lanes, prefetching: Verdict | None
) -> None:
    """Run the terms of a row in lanes, with the elements of later rows prefetched if that pays."""
    vector, lane = trace.split(pattern.position, factors=(None, chosen.lanes))
    if prefetching is not None and prefetching.is_profitable and isinstance(chosen.lanes, int):
        # Before lanes are vectorized: they are the consecutive elements of an iteration.
        prefetch_elements(trace, pattern, loop_name=vector, lanes=chosen.lanes, why=prefetching.why)
    trace.vectorize(lane, remainder=chosen.remainder)


def _element_prefetching_verdict(
    pattern: RowReduction, context: RuleContext, *, chosen: _Lanes
) -> Verdict:
    """Decide whether elements of later rows are prefetched. Siblings share the loop over rows, so that other
    work is between two of these."""
    if context.is_sibling or pattern.is_contiguous or not isinstance(chosen.lanes, int):
        return unprofitable_verdict(
            "it was measured for gathered terms of one iteration, in fixed lanes"
        )
    return element_prefetching_verdict(pattern.stored, context.machine, stats=context.stats)


class _Lanes(msgspec.Struct, frozen=True):
    """The number of partial results in lanes, and how the remainder runs (None: in a loop), with the reason.
    One lane stands for scalar code."""

    lanes: int | str
    remainder: Remainder | None
    why: str

    @property
    def what(self) -> str:
        if self.lanes == 1:
            return "one term at a time"
        return f"{self.lanes} partial results in lanes, the remainder {self.remainder or 'scalar'}"


def _scalar(why: str) -> _Lanes:
    return _Lanes(1, None, why)


def _lanes(pattern: RowReduction, context: RuleContext) -> _Lanes:
    mean, short_row = _mean_row(pattern, context.stats), context.thresholds.short_row
    if pattern.is_contiguous and mean is not None and mean <= short_row:
        return _scalar(f"rows have {mean:.3g} terms on average; vectors pay above {short_row}")
    if pattern.words:
        return _scalar("the bits of a word are found one after the other")
    if not pattern.is_regular:
        return _scalar("an operand is read, or terms are combined, in a way that vectors cannot do")
    if context.machine.is_scalable:
        lanes = context.machine.native_lanes(pattern.dtype)
        why = "the last vector of a row is masked, so that short rows need no remainder"
        return _Lanes(lanes, "masked", f"vectors are scalable; {why}")
    if pattern.is_contiguous:
        return _contiguous(pattern, context)
    return _gather_lanes(pattern, context)


def _gather_lanes(pattern: RowReduction, context: RuleContext) -> _Lanes:
    mean, machine = _mean_row(pattern, context.stats), context.machine
    # Without stats the safe choice, as vectors are slower on short rows.
    if mean is None:
        return _scalar("the length of rows is unknown, and vectors are slower for short ones")
    least = _min_gathered(pattern, context)
    if mean < least:
        return _scalar(
            f"rows have {mean:.3g} terms on average, and gathers pay from {least}; the processor overlaps "
            "short rows"
        )
    remainder, why = _remainder(machine)
    lanes = _lanes_of_gathers(machine, pattern.dtype, mean=mean)
    return _Lanes(lanes, remainder, f"rows have {mean:.3g} terms on average, {why}")


def _lanes_of_gathers(machine: Machine, dtype: str, *, mean: float) -> int:
    """Return the lanes of vectors of gathered terms, for rows of this mean length.

    Without mask registers they fit one register (measured on Zen 3 in float64 with 7 matrices: 4 lanes are
    1.0 to 1.3 times as fast as 8).
    """
    is_avx2 = machine.has_masked_loads and not machine.has_mask_registers
    has_few = mean < (FEW_NARROW_TERMS if is_avx2 else FEW_TERMS)
    lanes = GATHERED_LANES // 2 if machine.gathers == "moderate" and has_few else GATHERED_LANES
    return min(lanes, machine.lanes(dtype)) if is_avx2 else lanes


def _min_gathered(pattern: RowReduction, context: RuleContext) -> int:
    """Return the mean number of gathered terms per row from which vectors pay.

    Where elements are loaded one by one, so are those of the next row, which delays misses of the private
    cache, through which the matrix passes, too (measured on Zen 4 with 7 terms of a random graph: 0.8 to 0.9
    times as fast as scalar code with operands of 0.65 and 1.3 times the cache).
    """
    machine, stats = context.machine, context.stats
    if not machine.has_masked_loads:
        # Each lane of the remainder is a branch, as where gathers are slow.
        return MIN_GATHERED["slow"]
    if machine.gathers == "moderate" and stats is not None:
        operand = stats.columns * DType.parse(pattern.dtype).bits // 8
        is_near = operand < machine.private_cache // 2
        has_similar_rows = stats.longest_row <= SIMILAR_ROWS * stats.mean_row
        may_miss = not machine.has_mask_registers and has_similar_rows
        if stats.rows < PREDICTED_ROWS or not (is_near or may_miss):
            return MIN_GATHERED["slow"]
    return MIN_GATHERED[machine.gathers]


def _remainder(machine: Machine) -> tuple[Remainder | None, str]:
    """Return how the remainder of a row runs, and why.

    The exit of a remainder loop would be mispredicted (measured on Zen 4 with 12 to 200 terms: a masked
    vector is 0.95 to 1.5 times as fast). Where gathers are slow, it still costs less than one of them
    (measured with 16 to 48 terms: 1.2 times faster than a masked vector, 2 to 4 times on short rows).
    """
    if machine.gathers == "slow":
        return None, "and gathers are slow on this machine: a remainder loop costs less than one"
    return "masked", "and the remainder is one masked vector, which has no branch to mispredict"


def _contiguous(pattern: RowReduction, context: RuleContext) -> _Lanes:
    stats = context.stats
    longest = pattern.width if stats is None else stats.longest_row
    # The longest row decides, not the mean: one long row makes the branches unpredictable.
    if longest is not None and longest <= SHORT_ROW:
        return _scalar(
            f"no row has more than {longest} terms, and up to {SHORT_ROW} scalar code is faster"
        )
    lanes = context.machine.lanes(pattern.dtype)
    why = "one masked load reads a short row or a remainder"
    if (_mean_row(pattern, stats) or 0.0) >= VERY_LONG_ROW:
        lanes *= INDEPENDENT_VECTORS
        why = f"rows have {VERY_LONG_ROW} terms or more on average, and {INDEPENDENT_VECTORS} "
        why += "independent vectors hide the latency of their additions"
    return _Lanes(lanes, "masked", f"terms are contiguous; {why}")


def _mean_row(pattern: RowReduction, stats: Stats | None) -> float | None:
    """Return the mean number of terms per row, None if it is unknown."""
    return pattern.width if stats is None else stats.mean_row
