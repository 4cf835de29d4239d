"""Compilers with one planted defect each: one line of source of one pass is replaced."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzzing.defects.mutations import Mutation
from tests.fuzzing.execution.compilers import COMPILER, Compiler, Pass


@dataclass(frozen=True)
class Defect:
    """`line`, which occurs once in the source of `home`, is replaced by `instead`, which breaks the pass
    `of`. `needs_schedule`: only scheduled programs reveal the defect."""

    says: str
    of: str
    home: str
    line: str
    instead: str
    needs_schedule: bool = False

    def compiler(self) -> Compiler:
        """The compiler with the broken pass."""
        return COMPILER.replaced(self.of, self._broken_pass())

    def _broken_pass(self) -> Pass:
        mutation = Mutation(f"gossamer_lower.{self.home}", self.line, self.instead)
        broken: Pass = mutation.imported("gossamer_lower", self.of)
        return broken


DEFECTS = (
    Defect(
        "a coordinate that is looked up is taken to be there",
        of="lower_iterations", home="iterations.helpers.coordinate_lookup",
        line="            return (hit,)\n", instead="            return ()\n",
    ),
    Defect(
        "an iterator of one fiber is taken for one of another fiber",
        of="lower_iterations", home="iterations.helpers.coordinate_lookup",
        line="iterator.above == above and ", instead="",
    ),
    Defect(
        "padded slots are visited",
        of="lower_iterations", home="iterations.helpers.loop_nest",
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
        of="lower_iterations", home="iterations.helpers.iterator_kinds",
        line="return iterator if is_element else ", instead="return iterator if iterator else ",
    ),
    Defect(
        "an element of fused axes belongs to the row before, where it is the first of its row",
        of="lower_iterations", home="iterations.helpers.fused_axes",
        line='Search("upper", ', instead='Search("lower", ',
    ),
    Defect(
        "a search ends where it would in the first fiber",
        of="lower_buffers", home="buffers.lower_buffers",
        line="build.add(start, node.begin), element_number(start, node.end)",
        instead="build.add(start, node.begin), node.end",
    ),
    Defect(
        "an element is initialized in every step of its reduction",
        of="lower_blocks", home="blocks.lower_blocks",
        line="if block.init and self._init_position(loop, block).before == loop.var:", instead="if False:",
    ),
    Defect(
        "a search finds a position after its window",
        of="expand_search", home="search.helpers.search_expansion",
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
        line="for at in range(extent):", instead="for at in range(extent - 1):",
        needs_schedule=True,
    ),
    Defect(
        "lanes that are masked off are stored",
        of="vectorize_loops", home="vector.helpers.vector_form",
        line="predicate = conjunction(mask, own)", instead="predicate = own",
        needs_schedule=True,
    ),
    Defect(
        "iterations share a buffer that each needs for itself",
        of="contract_buffers", home="memory.contract_buffers",
        line="build.index(interval.high - interval.low + 1)", instead="build.ONE",
        needs_schedule=True,
    ),
    Defect(
        "each share of a parallel loop is as long as the shares before it together",
        of="outline_parallel", home="host.outline_parallel",
        line="extent = build.sub(build.index_var(end), build.index_var(begin))",
        instead="extent = build.index_var(end)",
        needs_schedule=True,
    ),
)  # fmt: skip
