"""Compilers with one planted defect each: one line of source of one pass is replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.fuzzing.defects.planted import Planted
from tests.fuzzing.execution.compilers import COMPILER, Compiler, Pass


@dataclass(frozen=True)
class Defect(Planted):
    """A defect of a pass. Programs reveal it as they are written, after random steps at the loop stage, or
    (programs that default rules recognize) scheduled by rules or at random."""

    package = "gossamer_lower"
    schedule: Literal["none", "steps", "rules"] = "none"

    def compiler(self) -> Compiler:
        """The compiler with the broken pass."""
        broken: Pass = self.imported(self.package, self.of)
        return COMPILER.replaced(self.of, broken)


DEFECTS = (
    Defect(
        "a coordinate that is looked up is taken to be there",
        of="lower_iterations", home="iterations.nests.coordinate_lookup",
        line="            return (hit,)\n", instead="            return ()\n",
    ),
    Defect(
        "an iterator of one fiber is taken for one of another fiber",
        of="lower_iterations", home="iterations.nests.coordinate_lookup",
        line="iterator.above == above and ", instead="",
    ),
    Defect(
        "padded slots are visited",
        of="lower_iterations", home="iterations.nests.loop_nest",
        line="nest.predicate = conjunction(nest.predicate, slot)", instead="pass",
    ),
    Defect(
        "an absent element is zero, whatever its fill value",
        of="lower_iterations", home="iterations.lower_iterations",
        line="buffer.fill if buffer.fill is not None else ", instead="",
    ),
    Defect(
        "fused axes do not initialize empty rows",
        of="lower_iterations", home="iterations.lower_iterations",
        line="if node.init and init_visits_others(", instead="if False and init_visits_others(",
    ),
    Defect(
        "points that meet in one element each initialize it",
        of="lower_iterations", home="iterations.nests.iterator_kinds",
        line="return iterator if is_element else ", instead="return iterator if iterator else ",
    ),
    Defect(
        "an element of fused axes belongs to the row before, where it is the first of its row",
        of="lower_iterations", home="iterations.nests.fused_axes",
        line='Search("upper", ', instead='Search("lower", ',
    ),
    Defect(
        "a search ends where it would in the first fiber",
        of="lower_buffers", home="buffers.lower_buffers",
        line="end = element_number(start, node.end, self._storage.found)",
        instead="end = node.end",
    ),
    Defect(
        "an element is initialized in every step of its reduction",
        of="lower_blocks", home="blocks.lower_blocks",
        line="if block.init and self._init_position(loop, block).before == loop.var:", instead="if False:",
    ),
    Defect(
        "a search finds a position after its window",
        of="expand_search", home="search.search_state",
        line='Compare("lt", low, self.search.end)', instead='Compare("le", low, self.search.end)',
    ),
    Defect(
        "a user's reducer reads what it has written",
        of="expand_reducers", home="blocks.expand_reducers",
        line="var.name: let.var for var, let in zip(",
        instead="var.name: let.value for var, let in zip(",
    ),
    Defect(
        "the last copy of an unrolled loop is missing",
        of="unroll_loops", home="loops.unroll_loops",
        line="for number in range(extent):", instead="for number in range(extent - 1):",
        schedule="steps",
    ),
    Defect(
        "lanes that are masked off are stored",
        of="vectorize_loops", home="vector.body_vectorizer",
        line="predicate = conjunction(mask, stated)", instead="predicate = stated",
        schedule="steps",
    ),
    Defect(
        "iterations share a buffer that each needs for itself",
        of="contract_buffers", home="memory.contract_buffers",
        line="index(interval.high - interval.low + 1)", instead="ONE",
        schedule="steps",
    ),
    Defect(
        "each share of a parallel loop is as long as the shares before it together",
        of="outline_parallel", home="host.outline_parallel",
        line="extent = sub(index_var(end), index_var(begin))",
        instead="extent = index_var(end)",
        schedule="steps",
    ),
    Defect(
        "a vector is loaded before a loop that changes it",
        of="hoist_invariant_loads", home="vector.hoist_invariant_loads",
        line="is_invariant(load, around, self.function) and ", instead="",
        schedule="rules",
    ),
    Defect(
        "the last lane is taken to be as the lanes before it",
        of="eliminate_redundant_masks", home="vector.eliminate_redundant_masks",
        line="index(lanes.count)", instead="index(lanes.count - 1)",
        schedule="rules",
    ),
    Defect(
        "all lanes run where one of them may",
        of="branch_on_full_masks", home="vector.branch_on_full_masks",
        line='LaneReduce("and", mask)', instead='LaneReduce("or", mask)',
        schedule="rules",
    ),
    Defect(
        "a search is taken to be made after the branch that makes it",
        of="hoist_searches", home="search.hoist_searches",
        line="        self._known = outer\n", instead="",
        schedule="rules",
    ),
    Defect(
        "a whole group runs whose last iteration is beyond the bound",
        of="peel_remainder", home="loops.peel_remainder",
        line="{var_name: index(count - 1)}", instead="{var_name: index(count - 2)}",
        schedule="rules",
    ),
    Defect(
        "a scan clears other bits than the lowest one",
        of="scan_bits", home="loops.scan_bits",
        line='lower = Binary("sub", left, ONE)',
        instead='lower = Binary("sub", left, Binary("add", ONE, ONE))',
    ),
    Defect(
        "a walk along a window goes on in another window",
        of="merge_searches", home="search.merge_searches",
        line="return None if window & enclosing.bound else enclosing", instead="return enclosing",
    ),
    Defect(
        "combined sums are stored from the element of the last one on",
        of="combine_lane_reductions", home="vector.combine_lane_reductions",
        line="    first = group[0]\n", instead="    first = group[-1]\n",
        schedule="rules",
    ),
)  # fmt: skip
