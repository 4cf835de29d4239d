"""Compilers with one planted defect each, which random programs of the later stages must detect."""

from __future__ import annotations

from tests.fuzzing.defects.broken_compilers import Defect

DEFECTS = (
    Defect(
        "a guard moves before a loop that writes what it reads",
        of="hoist_bounds_checks", home="bounds_checks.hoist_bounds_checks",
        line="if not self.point.is_stable(condition, loop.start, extent):", instead="if False:",
    ),
    Defect(
        "the condition of a while loop is guarded before its first iteration only",
        of="insert_bounds_checks", home="bounds_checks.access_checks",
        line="again = self._checks_before(stmt)",
        instead="again = ()",
    ),
    Defect(
        "what held before a write is known to hold after it",
        of="insert_bounds_checks", home="bounds_checks.access_checks",
        line="        super().move_past(stmt, new)\n",
        instead="",
    ),
    Defect(
        "a search that fails has a result",
        of="expand_search", home="search.search_state",
        line="Select(is_equal, low, absent)", instead="low",
    ),
    Defect(
        "an upper bound is a lower one",
        of="expand_search", home="search.search_state",
        line='"le" if self.search.kind == "upper" else "lt"', instead='"lt"',
    ),
    Defect(
        "the peeled last iteration is the one before it",
        of="peel_last_iteration", home="loops.peel_last_iteration",
        line="last = index(count - 1)", instead="last = index(count - 2)",
    ),
    Defect(
        "copies of an unrolled loop begin at 0",
        of="unroll_loops", home="loops.unroll_loops",
        line="values = {loop.var: add(loop.start, index(number))}",
        instead="values = {loop.var: index(number)}",
    ),
    Defect(
        "a block runs where its condition does not hold",
        of="lower_blocks", home="blocks.lower_blocks",
        line="body = _under(block.predicate, self.body(block.body))",
        instead="body = self.body(block.body)",
    ),
    Defect(
        "an init runs where the condition of its block does not hold",
        of="lower_blocks", home="blocks.lower_blocks",
        line="body = (*_under(visited, self.body(block.init)), *body)",
        instead="body = (*self.body(block.init), *body)",
    ),
    Defect(
        "a guard moves before a loop that does not run",
        of="hoist_bounds_checks", home="bounds_checks.hoist_bounds_checks",
        line="if count is None or count <= 0:", instead="if False:",
    ),
    Defect(
        "a search begins at the first element of all",
        of="expand_search", home="search.search_state",
        line="return (*allocated_cell(self.low, begin), *allocated_cell(self.size, size))",
        instead="return (*allocated_cell(self.low, ZERO), *allocated_cell(self.size, end))",
    ),
    Defect(
        "an init that moves out of a reduction runs where a condition does not hold",
        of="lower_blocks", home="blocks.lower_blocks",
        line="_under(conjunction(*conditions), init)",
        instead="_under(None, init)",
    ),
    Defect(
        "a condition is evaluated before a loop that changes it",
        of="unswitch_uniform_conditions", home="loops.unswitch_uniform_conditions",
        line="if is_speculatable_before(part, loop, function, is_in_each=True)", instead="if True",
    ),
    Defect(
        "a loop is split by a bound that overflows",
        of="split_index_set", home="loops.split_index_set",
        line="return is_exact and is_same", instead="return is_same",
    ),
    Defect(
        "a buffer that left a loop has the size of the last iteration",
        of="hoist_allocations", home="memory.hoist_allocations",
        line='larger = Binary("max", size, substitute(extent, fresh))',
        instead="larger = substitute(extent, fresh)",
    ),
)  # fmt: skip
