"""Sparse times a narrow dense matrix: several partial sums of a row run side by side.

The features of a row fill one or two vectors. One chain of multiply-adds for each would leave the units idle
while they wait for the last sum, so several elements of the row are added to sums of their own, which are
added at the end of the row. The dense operand is packed at aligned addresses first if it is gathered often
and stays in a cache: no load crosses a cache line then.
"""

from __future__ import annotations

from typing import NamedTuple

from gossamer_ir.interchange.records import Decision, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_ir.support.byte_sizes import size_in_words
from gossamer_ir.support.counted import counted
from gossamer_schedule.definition.made_names import (
    cache_name,
    copy_block_name,
    copy_name,
    partial_name,
    unit_loop_name,
)
from gossamer_schedule.rules.cost.parallel_rows import parallel_rows
from gossamer_schedule.rules.cost.partial_sums import (
    LEAST_TERMS,
    LEAST_USES,
    partial_sums,
    why_not_packed,
)
from gossamer_schedule.rules.cost.thread_work import grain
from gossamer_schedule.rules.patterns.gathers import Gather, gather_of
from gossamer_schedule.rules.patterns.row_reduction import (
    RowReduction,
    has_rows_and_init,
    has_taken,
    is_clashing,
    may_reassociate,
    names_used,
    single_iteration,
    sparse_reduction,
)
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.trace_builder import PartialSums, TraceBuilder, VectorLoops

WORK_PER_ROW = 4
"""Cost of a row besides its nonzeros, in nonzeros."""

_PACKED_SCOPE = "global"


@schedule_rule(
    pattern=(
        '`out[i, k] = out[i, k] + ...` over row, fiber and features (`[I, J, K]`, "SRS"), if rows have '
        f"{LEAST_TERMS} terms or more on average, and one or two vectors of features"
    ),
    programs="the same times a narrow matrix",
    schedule=(
        "several partial sums of a row in vector registers; a small dense operand is packed at aligned "
        "addresses"
    ),
)
def narrow_spmm(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over long fibers with few features; None for any other program."""
    program, pattern = single_iteration(module), sparse_reduction(module)
    if program is None or pattern is None or not pattern.feature or not pattern.is_regular:
        return None
    if not may_reassociate(program[1]) or not has_rows_and_init(*program):
        return None
    hardware = hardware_params(target)
    vectors, rest = divmod(pattern.features or 0, hardware.lanes(pattern.dtype))
    if not vectors or rest:
        return None
    sums, gather = partial_sums(vectors, context.stats), gather_of(*program, pattern)
    if sums == 1 or _has_taken_names(module, pattern, gather):
        return None
    why_not = why_not_packed(gather, hardware, context.stats)
    # Two vectors keep the units half busy, so that without packing partial sums gain nothing.
    if why_not and vectors > 1:
        return None
    summing, loops, partial = _side_by_side(pattern, vectors, hardware, sums)
    packing = (
        Decision("the dense operand is read where it is", why_not)
        if why_not
        else _packed(pattern, gather, vectors, hardware, partial=partial)
    )
    rows = parallel_rows(pattern.row, before=pattern.before, per_row=WORK_PER_ROW, vectors=vectors)
    return PatternMatch(pattern.text, (summing, _in_vectors(loops), packing, rows))


def _has_taken_names(module: Module, pattern: RowReduction, gather: Gather) -> bool:
    """Return whether the program uses one of the names that the primitives would make."""
    program = single_iteration(module)
    assert program is not None, "the pattern is that of a single iteration"
    names = {partial_name(pattern.block), partial_name(pattern.output), unit_loop_name(pattern.row)}
    if gather.operand:
        packed = cache_name(gather.operand, _PACKED_SCOPE)
        names |= {packed, copy_block_name(partial_name(pattern.block), packed)}
    return has_taken(*program, names=names) or is_clashing(names_used(*program), [gather.operand])


class _Nest(NamedTuple):
    """The loop over partial sums and the loops over features: of the partial sums, of their init, or of their
    total."""

    part: str
    features: VectorLoops


def _side_by_side(
    pattern: RowReduction, vectors: int, hardware: HardwareParams, sums: int
) -> tuple[Decision, tuple[_Nest, ...], PartialSums]:
    """Return the decision to add elements to several sums, its loops, and the block of the sums."""
    trace, lanes = TraceBuilder(), hardware.lanes(pattern.dtype)
    group, part = trace.split(pattern.position, factors=(None, sums))
    features = trace.split_in_vectors(
        pattern.feature, tiles=1, vectors=vectors, lanes=lanes, exact=True
    )
    partial = trace.rfactor(pattern.block, buffer=pattern.output, loop=part)
    inside = (part, *filter(None, features))
    trace.add("reorder", loops=(group, *inside))
    trace.add("reverse_compute_at", block=pattern.block, loop=pattern.row)
    trace.add("set_scope", buffer=partial.buffer, scope="local")
    init = trace.decompose_reduction(partial.block, loop=group, elements=inside).loops
    total = trace.split_in_vectors(
        copy_name(pattern.feature), tiles=1, vectors=vectors, lanes=lanes, exact=True
    )
    # The sums of a vector one after the other, so that their total stays in a register.
    order = (total.vector, copy_name(part), total.lane)
    trace.add("reorder", loops=tuple(filter(None, order)))
    nests = (
        _Nest(part, features),
        _Nest(init[part], VectorLoops("", init.get(features.vector, ""), init[features.lane])),
        _Nest(copy_name(part), total),
    )
    why = (
        f"rows have {LEAST_TERMS} elements or more on average, and {counted(vectors, 'vector')} of features: "
        "a chain of multiply-adds for each would wait for its last sum"
    )
    return Decision(f"{sums} partial sums of a row in registers", why, trace.steps), nests, partial


def _in_vectors(nests: tuple[_Nest, ...]) -> Decision:
    """Vectorize the lanes, and unroll the partial sums and their vectors."""
    trace = TraceBuilder()
    for nest in nests:
        trace.add("vectorize", loop=nest.features.lane)
        trace.add("unroll", loop=nest.part)
        if nest.features.vector:
            trace.add("unroll", loop=nest.features.vector)
    return Decision(
        "features in lanes, and partial sums unrolled",
        "features are contiguous, and registers are assigned at compile time",
        trace.steps,
    )


def _packed(
    pattern: RowReduction,
    gather: Gather,
    vectors: int,
    hardware: HardwareParams,
    *,
    partial: PartialSums,
) -> Decision:
    """Copy the dense operand to aligned addresses before all rows."""
    trace = TraceBuilder()
    unit = trace.add_unit_loop(pattern.row)
    row, feature = trace.cache_region(
        partial.block, buffer=gather.operand, loop=unit, scope=_PACKED_SCOPE, dimensions=2
    ).loops
    lanes = hardware.lanes(pattern.dtype)
    features = trace.split_in_vectors(feature, tiles=1, vectors=vectors, lanes=lanes, exact=True)
    trace.add("vectorize", loop=features.lane)
    if features.vector:
        trace.add("unroll", loop=features.vector)
    trace.add("parallel", loop=row, grain=grain(vectors))
    return Decision(
        f"{gather.operand} packed at aligned addresses",
        f"each of its rows is gathered {LEAST_USES} times or more on average, and no load of the copy "
        f"crosses a cache line; it stays in the private cache of {size_in_words(hardware.private_cache)}",
        trace.steps,
    )
