"""One number per row of a matrix with short rows (CSR times vector): several rows in the lanes of a vector.

Each lane adds the terms of its own row, in their order, and all lanes run until the longest of the rows ends.
A row of two terms costs scalar code a mispredicted branch, and vectors along the row leave most lanes unused.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.machine.hardware_params import HardwareParams, hardware_params
from gossamer_ir.nodes import Module
from gossamer_schedule.definition.made_names import extent_name, longest_name
from gossamer_schedule.rules.analysis.iterations import single_iteration
from gossamer_schedule.rules.analysis.outputs import has_rows_and_init
from gossamer_schedule.rules.analysis.taken_names import has_taken
from gossamer_schedule.rules.decisions.parallel_rows import run_rows_in_parallel
from gossamer_schedule.rules.patterns.row_reduction import RowReduction, row_reduction
from gossamer_schedule.rules.schedule_rule import PatternMatch, RuleContext, schedule_rule
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder

MEAN_SHORT_ROW = 4
"""Maximum mean number of terms of a row. A lane gathers the column, the value and the operand of each term,
where a vector along the row gathers operands only (measured against `row_spmv`: 1.2 to 1.5 times as fast at 2
and 4 terms, 0.85 at 6)."""

LONGEST_SHORT_ROW = 8
"""Maximum number of terms of a row: the lanes of shorter rows wait."""

SPREAD = 3
"""Maximum length of the longest row, in mean rows. If lengths vary more, most lanes wait for one of them
(measured: lanes lose if they take twice as many steps as there are terms; with rows of 2, at most 6, they
take 1.33 times as many)."""

WORK_PER_GROUP = 64
"""Vectors of work for a vector of rows: the elements of its gathers are loaded one by one."""


@schedule_rule(
    pattern=(
        '`out[i] = out[i] + ...` over row and fiber (`[I, J]`, "SR"), if rows have at most '
        f"{MEAN_SHORT_ROW} gathered terms on average and {LONGEST_SHORT_ROW} at most, and gathers are fast"
    ),
    programs="the same, if all rows are short",
    schedule="a vector of rows, each lane with the terms of its own row",
)
def short_spmv(module: Module, target: Target, context: RuleContext) -> PatternMatch | None:
    """Return the schedule for a reduction over short fibers without a feature loop; None for any other
    program."""
    program, pattern = single_iteration(module), row_reduction(module)
    hardware = hardware_params(target)
    if program is None or pattern is None or pattern.feature or not has_rows_and_init(*program):
        return None
    if not _are_gathered_in_lanes(pattern, hardware, context.stats):
        return None
    names = {extent_name(pattern.position), longest_name(pattern.position)}
    if has_taken(*program, names=names):
        return None
    trace = context.new_trace()
    group, row = trace.split(pattern.row, factors=(None, hardware.lanes(pattern.dtype)))
    _run_rows_in_lanes(trace, pattern, group=group, row=row)
    run_rows_in_parallel(trace, group, before="", vectors=WORK_PER_GROUP)
    return PatternMatch(pattern.text, trace)


def _are_gathered_in_lanes(
    pattern: RowReduction, hardware: HardwareParams, stats: Stats | None
) -> bool:
    """Return whether vectors can read the terms, and rows are short enough for one in each lane."""
    is_gathered = pattern.is_regular and not pattern.is_contiguous and pattern.width is None
    return is_gathered and hardware.gathers == "fast" and stats is not None and _are_short(stats)


def _are_short(stats: Stats) -> bool:
    longest = min(LONGEST_SHORT_ROW, SPREAD * stats.mean_row)
    return stats.mean_row <= MEAN_SHORT_ROW and stats.longest_row <= longest


def _run_rows_in_lanes(trace: TraceBuilder, pattern: RowReduction, *, group: str, row: str) -> None:
    """Keep the results of a group of rows in a register, with a row in each lane."""
    copy = trace.cache_write(
        pattern.block, buffer=pattern.output, scope="local", elements=(pattern.row,)
    )
    trace.add("reverse_compute_at", block=copy.block, loop=group)
    longest = trace.uniform_extent(pattern.position, over=row)
    trace.reorder(pattern.position, row)
    init = trace.decompose_reduction(pattern.block, loop=pattern.position, elements=(row,))
    trace.vectorize(longest, init.loops[row], row, copy.loops[pattern.row])
    trace.decide(
        "rows in lanes, until the longest of them ends",
        f"no row has more than {LONGEST_SHORT_ROW} terms, nor {SPREAD} times as many as the mean, and "
        "gathers are fast on this machine: their masks replace the branches at the ends of rows",
    )
