"""Sampled dense times dense (SDDMM): a dot product for each stored element of a sparse matrix.

The nonzeros of a row are processed in groups. Each nonzero of a group has a vector of partial sums over the
features, and one transpose-reduce in registers turns all of them into one vector of results. The row of the
first operand stays in registers during the loop over the row's nonzeros.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_heuristics.gathered_rows import min_aligned
from gossamer_ir.interchange.records import Stats
from gossamer_ir.nodes import Module
from gossamer_schedule.rules.decisions.alignment import align_to_rows, row_alignment_verdict
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.decisions.prefetching.row_prefetching import (
    prefetch_rows,
    row_prefetching_verdict,
)
from gossamer_schedule.rules.decisions.scalable_vectors.product_groups import (
    product_groups,
    run_product_groups,
)
from gossamer_schedule.rules.patterns.sampled_products import SampledProducts, sampled_products
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import lanes_in_words
from gossamer_support.message_texts import amount

SHORT_GROUP, LONG_GROUP = 4, 16
"""Nonzeros in a group. The remainder of a row runs one nonzero at a time."""

LONG_GROUP_ROW, FEW_VECTORS = 48, 3
"""Minimum mean number of nonzeros per row and maximum number of vectors of features for long groups to pay.
With more vectors, the remainder of a row costs more than the saved shuffles."""

UNROLLED_VECTORS = 33
"""Maximum number of vectors of features that are unrolled. More of them run in a loop (measured with 32:
0.6 to 0.8 times as fast in a loop)."""


@schedule_rule(
    pattern=('`out[i, j] = out[i, j] + ...` over row, fiber and features (`[I, J, K]`, "SSR")'),
    programs="SDDMM over CSR and ragged rows",
    schedule=(
        "groups of a row's elements, one vector of partial sums for each, one transpose-reduce for the "
        "group; rows of a cache-resident operand are read by aligned cache lines, those of a larger one "
        "are prefetched"
    ),
    handles_siblings=True,
)
def row_sddmm(module: Module, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for such a product; None for any other program."""
    pattern = sampled_products(module)
    if pattern is None or pattern.features == 0:
        return None
    trace = context.new_trace()
    lanes = context.machine.lanes(pattern.dtype)
    vectors = _vectors(pattern, lanes)
    if pattern.features == 1:
        trace.decide("one product at a time", "a single feature needs no reduction")
    elif not pattern.is_regular:
        why = "an operand is read, or products are combined, in a way that vectors cannot do"
        trace.decide("one product at a time", why)
        vectors = pattern.features
    elif pattern.is_padded:
        why = "each slot is tested for padding, so groups would branch as often"
        trace.decide("one element at a time", why)
        _run_dot_products(trace, pattern, lanes=lanes)
    elif context.machine.is_scalable:
        _run_scalable(trace, pattern, context=context)
    else:
        _run_elements(trace, pattern, context=context)
    run_rows_in_parallel(trace, pattern.row, before=pattern.before, vectors=vectors or 1)
    return PatternMatch(pattern.text, trace)


def _run_scalable(trace: TraceBuilder, pattern: SampledProducts, *, context: RuleContext) -> None:
    """Process the elements of a row in groups with scalable vectors, or one at a time if rows are short."""
    machine, stats = context.machine, context.stats
    groups, lanes = product_groups(machine, stats), machine.native_lanes(pattern.dtype)
    if groups and pattern.length is not None and not context.is_sibling:
        number = "the number of vectors is known at run time only"
        run_product_groups(trace, pattern, groups=groups, lanes=lanes, number=number)
        return
    why = "the parts of a row share a block, out of which partial sums cannot be factored"
    if not context.is_sibling:
        mean = "an unknown number of" if stats is None else f"{stats.mean_row:.3g}"
        why = f"rows have {mean} elements on average, too few for a group"
    trace.decide("one element at a time", why)
    _run_dot_products(trace, pattern, lanes=lanes)


def _vectors(pattern: SampledProducts, lanes: int) -> int | None:
    """Return the number of vectors that hold all features; None if it is symbolic."""
    return None if pattern.features is None else -(-pattern.features // lanes)


def _run_elements(trace: TraceBuilder, pattern: SampledProducts, *, context: RuleContext) -> None:
    """Process the elements of a row in groups, or one at a time if rows are short."""
    stats, short_row = context.stats, context.thresholds.short_row
    if _run_many_vectors(trace, pattern, context=context):
        return
    if stats is not None and stats.mean_row <= short_row:
        trace.decide(
            "one element at a time",
            f"rows have {stats.mean_row:.3g} elements on average; groups pay above {short_row}",
        )
        _sum_over_features(trace, pattern, context=context, loop_name=pattern.position)
        return
    group, why = _group(stats, _vectors(pattern, context.machine.lanes(pattern.dtype)))
    _, inner = trace.split(pattern.position, factors=(None, group))
    trace.decide(
        f"groups of {group} elements of a row",
        f"one transpose-reduce turns the partial sums of a group into its results; {why}",
    )
    _sum_over_features(trace, pattern, context=context, loop_name=inner)
    trace.unroll(inner)
    trace.decide(
        "the elements of a group unrolled",
        "each has a register for its partial sums, assigned at compile time",
    )


def _run_many_vectors(
    trace: TraceBuilder, pattern: SampledProducts, *, context: RuleContext
) -> bool:
    """Run a loop over vectors of features, each for a group of elements, if vectors are too many to be
    unrolled. Return whether it runs so.

    One element at a time, each multiply-add waits for the last one (measured on Zen 3 with 64 vectors: groups
    are 1.3 to 1.9 times as fast, also without prefetches and on rows of 4 elements).
    """
    machine, stats = context.machine, context.stats
    vectors, rest = divmod(pattern.features or 0, lanes := machine.lanes(pattern.dtype))
    groups = product_groups(machine, stats)
    has_groups = bool(groups) and pattern.length is not None and not context.is_sibling
    if rest or vectors <= UNROLLED_VECTORS or not has_groups:
        return False
    number = f"{pattern.features} features take {amount(vectors, 'vector')}, more than {UNROLLED_VECTORS}"
    run_product_groups(trace, pattern, groups=groups, lanes=lanes, number=number)
    return True


def _group(stats: Stats | None, vectors: int | None) -> tuple[int, str]:
    """Return the number of nonzeros in a group, and the reason."""
    if stats is None:
        return SHORT_GROUP, "the length of rows is unknown"
    is_long = stats.mean_row >= LONG_GROUP_ROW
    mean = f"rows have {stats.mean_row:.3g} elements on average"
    if is_long and (vectors or 0) <= FEW_VECTORS:
        return LONG_GROUP, f"{mean}, {LONG_GROUP_ROW} or more, and few features"
    if is_long:
        return (
            SHORT_GROUP,
            f"features fill more than {FEW_VECTORS} vectors, so the remainder of a row is costly",
        )
    return SHORT_GROUP, f"{mean}, fewer than {LONG_GROUP_ROW}"


def _sum_over_features(
    trace: TraceBuilder,
    pattern: SampledProducts,
    *,
    context: RuleContext,
    loop_name: str,
) -> None:
    """Compute the dot products of the elements of a loop, and prefetch the rows that it gathers."""
    gather, machine, stats = pattern.gather, context.machine, context.stats
    aligning = row_alignment_verdict(
        gather, machine, stats=stats, least=min_aligned(machine), most=UNROLLED_VECTORS - 1
    )
    prefetching = row_prefetching_verdict(
        gather,
        machine,
        stats=stats,
        thresholds=context.thresholds.prefetch,
        is_aligned=aligning.is_profitable,
    )
    align_to_rows(trace, gather, aligning=aligning, machine=machine)
    _run_dot_products(
        trace, pattern, lanes=machine.lanes(pattern.dtype), is_aligned=aligning.is_profitable
    )
    prefetch_rows(trace, replace(gather, loop=loop_name), prefetching=prefetching)


def _run_dot_products(
    trace: TraceBuilder, pattern: SampledProducts, *, lanes: int | str, is_aligned: bool = False
) -> None:
    """Sum over the features in vectors: as many as hold all features, and one more if loads are aligned."""
    vectors = None if isinstance(lanes, str) else _vectors(pattern, lanes)
    vectors = None if vectors is None else vectors + is_aligned
    outer, lane = trace.split(pattern.feature, factors=(vectors, lanes))
    # The init runs before the loop over vectors, so that lanes keep their sums from one vector to the next.
    trace.decompose_reduction(pattern.block, loop=outer)
    trace.vectorize(lane, remainder="masked")
    why = "the number of vectors is known at run time only, so they run in a loop"
    if vectors is not None:
        how = "in a loop, because those are many"
        if vectors <= UNROLLED_VECTORS:
            how = "unrolled, because those are few"
            trace.unroll(outer)
        why = f"{pattern.features} features take {amount(vectors, 'vector')}, {how}"
    trace.decide(
        f"partial sums over the features in vectors of {lanes_in_words(lanes)}",
        f"additions in different lanes do not wait for each other; {why}",
    )
