"""Sampled dense times dense (SDDMM): a dot product for each stored element of a sparse matrix.

The nonzeros of a row are processed in groups. Each nonzero of a group has a vector of partial sums over the
features, and one transpose-reduce in registers turns all of them into one vector of results. The row of the
first operand stays in registers during the loop over the row's nonzeros.
"""

from __future__ import annotations

import msgspec

from gossamer_ir.core.axis_kinds import is_padded, is_varied
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import indptr_name
from gossamer_ir.interchange.records import Decision, Stats, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.counted import counted
from gossamer_schedule.rules.cost.gathered_rows import (
    PrefetchThresholds,
    aligned_to_rows,
    prefetched,
)
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.patterns.gathers import Gather, gathered_operand
from gossamer_schedule.rules.patterns.regular_reads import (
    is_dense_root,
    reads_regularly,
    selects_by_ragged,
)
from gossamer_schedule.rules.patterns.row_reduction import (
    axes_of,
    has_taken,
    may_reassociate,
    reduced_buffer,
    single_iteration,
    slots_before,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RowPart, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import TraceBuilder

SHORT_GROUP, LONG_GROUP = 4, 16
"""Nonzeros in a group. The remainder of a row runs one nonzero at a time."""

LONG_ROW, FEW_VECTORS = 48, 3
"""Minimum mean number of nonzeros per row and maximum number of vectors of features for long groups to pay.
With more vectors, the remainder of a row costs more than the saved shuffles."""

UNROLLED_VECTORS = 33
"""Maximum number of vectors of features that are unrolled. More of them run in a loop (measured with 32:
0.6 to 0.8 times as fast in a loop)."""

PREFETCH = PrefetchThresholds(least_row=128, least_operand=2)
"""When prefetching pays: an operand of this size exceeds the private caches of a core (measured on graphs:
1.1 to 1.4 times faster)."""

ALONE = RowPart(short_row=0.0, prefetch=PREFETCH)
"""The thresholds for a program of its own, in which groups pay for rows of any length."""

WORK_PER_ROW = 4
"""Cost of a row besides its nonzeros, in nonzeros."""


class SampledProducts(msgspec.Struct, frozen=True):
    """`out[i, j] = sum over k of ...` for each j of the fiber of row i, with names of the loop stage.

    `features` is the extent of the loop `feature` (None: symbolic), `before` the text of the number of
    nonzeros before a row, and `gathered` the dense operand whose rows are read by column ("": none).
    `is_regular` is true if vectors over features can read the operands (`reads_regularly`), `is_padded` if
    slots of the fiber may be padding.
    """

    block: str
    row: str
    position: str
    feature: str
    features: int | None
    dtype: str
    before: str
    gathered: str
    is_regular: bool
    is_padded: bool

    @property
    def text(self) -> str:
        """Return the pattern in words."""
        return (
            f"each stored element {self.position} of row {self.row} is a sum over the features "
            f"{self.feature}"
        )


@schedule_rule(
    pattern=('`out[i, j] = out[i, j] + ...` over row, fiber and features (`[I, J, K]`, "SSR")'),
    programs="SDDMM over CSR and ragged rows",
    schedule=(
        "groups of a row's elements, one vector of partial sums for each, one transpose-reduce for the "
        "group; rows of a cache-resident operand are read by aligned cache lines, those of a larger one "
        "are prefetched"
    ),
    handles_parts=True,
)
def row_sddmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such a product; None for any other program.

    Elements of a part run one at a time if its rows are short.
    """
    pattern = pattern_of(module)
    if pattern is None or pattern.features == 0:
        return None
    thresholds = ALONE if context.part is None else context.part
    hardware = hardware_params(target)
    decisions = _decisions(pattern, hardware, context.stats, thresholds)
    return PatternMatch(pattern.text, decisions)


def _decisions(
    pattern: SampledProducts,
    hardware: HardwareParams,
    stats: Stats | None,
    thresholds: RowPart,
) -> tuple[Decision, ...]:
    if pattern.features == 1:
        scalar = Decision("one product at a time", "a single feature needs no reduction")
        return scalar, _parallel(pattern, 1)
    if not pattern.is_regular:
        why = "an operand is read, or products are combined, in a way that vectors cannot do"
        return Decision("one product at a time", why), _parallel(pattern, pattern.features)
    lanes = hardware.lanes(pattern.dtype)
    rows = _parallel(pattern, _vectors(pattern, lanes))
    if pattern.is_padded:
        why = "each slot is tested for padding, so groups would branch as often"
        return Decision("one element at a time", why), _dot_products(pattern, lanes), rows
    prefetch, short_row = thresholds.prefetch, thresholds.short_row
    if stats is not None and stats.mean_row <= short_row:
        why = f"rows have {stats.mean_row:.3g} elements on average; groups pay above {short_row}"
        sums = _sums(pattern, hardware, stats, prefetch=prefetch, loop=pattern.position)
        return Decision("one element at a time", why), *sums, rows
    return *_grouped(pattern, hardware, stats, prefetch), rows


def _group(stats: Stats | None, vectors: int | None) -> tuple[int, str]:
    """Return the number of nonzeros in a group, and the reason."""
    if stats is None:
        return SHORT_GROUP, "the length of rows is unknown"
    is_long = stats.mean_row >= LONG_ROW
    mean = f"rows have {stats.mean_row:.3g} elements on average"
    if is_long and (vectors or 0) <= FEW_VECTORS:
        return LONG_GROUP, f"{mean}, {LONG_ROW} or more, and few features"
    if is_long:
        return (
            SHORT_GROUP,
            f"features fill more than {FEW_VECTORS} vectors, so the remainder of a row is costly",
        )
    return SHORT_GROUP, f"{mean}, fewer than {LONG_ROW}"


def pattern_of(module: Module) -> SampledProducts | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    found = single_iteration(module)
    if found is None or found[1].kinds != "SSR":
        return None
    function, iteration = found
    axes = axes_of(function, iteration)
    if len(axes) != 3:
        return None
    row, fiber, feature = axes
    if not is_varied(fiber) or fiber.parent != row.name:
        return None
    if not is_dense_root(row) or not is_dense_root(feature):
        return None
    output = reduced_buffer(function, iteration, element=iteration.vars[:2])
    names = {indptr_name(fiber.name)}
    if output is None or output.axes != (row.name, fiber.name):
        return None
    if has_taken(function, iteration, names=names):
        return None
    row_var, position, feature_var = iteration.vars
    return SampledProducts(
        block=iteration.name,
        row=row_var,
        position=position,
        feature=feature_var,
        features=integer_value(feature.length),
        dtype=output.dtype,
        before=slots_before(fiber, row_var, element=row_var),
        gathered=gathered_operand(function, iteration, column=position, feature=feature_var),
        is_regular=reads_regularly(function, iteration, lane=feature_var)
        and not selects_by_ragged(function, iteration)
        and may_reassociate(iteration),
        is_padded=is_padded(fiber),
    )


def _grouped(
    pattern: SampledProducts,
    hardware: HardwareParams,
    stats: Stats | None,
    prefetch: PrefetchThresholds,
) -> tuple[Decision, ...]:
    """Process nonzeros in groups, each nonzero with its partial sums."""
    group, why = _group(stats, _vectors(pattern, hardware.lanes(pattern.dtype)))
    splitting, unrolling = TraceBuilder(), TraceBuilder()
    _, inner = splitting.split(pattern.position, factors=(None, group))
    unrolling.add("unroll", loop=inner)
    return (
        Decision(
            f"groups of {group} elements of a row",
            f"one transpose-reduce turns the partial sums of a group into its results; {why}",
            splitting.steps,
        ),
        *_sums(pattern, hardware, stats, prefetch=prefetch, loop=inner),
        Decision(
            "the elements of a group unrolled",
            "each has a register for its partial sums, assigned at compile time",
            unrolling.steps,
        ),
    )


def _sums(
    pattern: SampledProducts,
    hardware: HardwareParams,
    stats: Stats | None,
    *,
    prefetch: PrefetchThresholds,
    loop: str,
) -> tuple[Decision, ...]:
    """Return the decisions on the sums of the elements of a loop, with the prefetching of gathered rows."""
    gather = Gather(
        pattern.gathered, pattern.features, pattern.dtype, pattern.block, loop, pattern.feature
    )
    alignment = aligned_to_rows(gather, hardware, stats, most=UNROLLED_VECTORS - 1)
    return (
        alignment,
        _dot_products(pattern, hardware.lanes(pattern.dtype), more=len(alignment.steps)),
        prefetched(gather, hardware, stats, prefetch, is_aligned=bool(alignment.steps)),
    )


def _dot_products(pattern: SampledProducts, lanes: int, *, more: int = 0) -> Decision:
    """Sum over the features in vectors: as many as hold all features, and `more` if loads are aligned."""
    vectors = _vectors(pattern, lanes)
    vectors = None if vectors is None else vectors + more
    trace = TraceBuilder()
    outer, lane = trace.split(pattern.feature, factors=(vectors, lanes))
    trace.decompose_reduction(pattern.block, loop=outer)
    trace.add("vectorize", loop=lane, rest="masked")
    why = "the number of vectors is known at run time only, so they run in a loop"
    if vectors is not None:
        how = "in a loop, because those are many"
        if vectors <= UNROLLED_VECTORS:
            how = "unrolled, because those are few"
            trace.add("unroll", loop=outer)
        why = f"{pattern.features} features take {counted(vectors, 'vector')}, {how}"
    return Decision(
        f"partial sums over the features in vectors of {lanes} lanes",
        f"additions in different lanes do not wait for each other; {why}",
        trace.steps,
    )


def _vectors(pattern: SampledProducts, lanes: int) -> int | None:
    """Return the number of vectors that hold all features; None if it is symbolic."""
    return None if pattern.features is None else -(-pattern.features // lanes)


def _parallel(pattern: SampledProducts, vectors: int | None) -> Decision:
    return parallel_rows(
        pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors or 1
    )
