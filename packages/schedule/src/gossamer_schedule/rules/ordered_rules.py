"""The rules in the order in which they are tried: the one list of them.

A rule is added here by its import and by one line in `ORDERED_RULES`, at its place; the first rule that
matches is used. The rules that `schedule_report` tries, those that `fused_rows` tries for its parts, and the
table in `docs/architecture.md` follow from this list and from what the decorator of each rule declares.
"""

from __future__ import annotations

from gossamer_schedule.rules.library.block_spmm import block_spmm
from gossamer_schedule.rules.library.block_spmv import block_spmv
from gossamer_schedule.rules.library.dense_rows import dense_rows
from gossamer_schedule.rules.library.elementwise import elementwise
from gossamer_schedule.rules.library.fused_rows import fused_rows
from gossamer_schedule.rules.library.group_spmm import group_spmm
from gossamer_schedule.rules.library.row_sddmm import row_sddmm
from gossamer_schedule.rules.library.row_spmm import row_spmm
from gossamer_schedule.rules.library.row_spmv import row_spmv
from gossamer_schedule.rules.library.scatter_spmm import scatter_spmm
from gossamer_schedule.rules.library.separate_iterations import separate_iterations
from gossamer_schedule.rules.library.slice_spmv import slice_spmv
from gossamer_schedule.rules.library.tile_spmm import tile_spmm
from gossamer_schedule.rules.schedule_rule import Rule, rule_record

ORDERED_RULES: tuple[Rule, ...] = (
    row_spmv,
    row_spmm,
    # Before `block_spmm`, which matches all of these programs.
    block_spmv,
    block_spmm,
    tile_spmm,
    row_sddmm,
    slice_spmv,
    group_spmm,
    elementwise,
    dense_rows,
    scatter_spmm,
    fused_rows,
    separate_iterations,
)

RULES = tuple(map(rule_record, ORDERED_RULES))
"""The records of the rules, in this order; the first rule that matches is used."""

PART_RULES = tuple(rule for rule in RULES if rule.handles_parts)
"""The rules that also schedule one of several iterations over the same rows."""

ITERATION_RULES = tuple(rule for rule in RULES if not rule.combines_rules)
"""The rules for programs of one iteration."""
