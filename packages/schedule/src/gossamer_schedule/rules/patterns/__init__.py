"""The rules for programs of one iteration, in the order in which they are tried: the one list of them.

A rule is added here by one import, at its place; the first rule that matches is used. The rules that
`explain` tries, those that `fused_rows` tries for its parts, and the table in `docs/architecture.md` follow
from this list and from what the decorator of each rule declares.
"""

# The order of the lines is the order of the rules, so isort must not sort them.
# isort: off

from gossamer_schedule.rules.patterns.spmv_rows import spmv_rows as spmv_rows
from gossamer_schedule.rules.patterns.sparse_times_dense import (
    sparse_times_dense as sparse_times_dense,
)
from gossamer_schedule.rules.patterns.bsr_times_dense import bsr_times_dense as bsr_times_dense
from gossamer_schedule.rules.patterns.sddmm import sddmm as sddmm
from gossamer_schedule.rules.patterns.elementwise import elementwise as elementwise
from gossamer_schedule.rules.patterns.rowwise_dense import rowwise_dense as rowwise_dense

from gossamer_schedule.rules.schedule_rule import rules_among as _rules_among

PATTERN_RULES = _rules_among(tuple(globals().values()))
"""The rules above, in this order."""
