"""Random programs, as written and under random schedules, agree with the oracle at every stage and as
machine code. `nox -s fuzz` runs more of them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import gossamer
from gossamer_ir.nodes import Binary, Function, Module
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.walk import walk
from tests.fuzzing.checks.census import census
from tests.fuzzing.checks.disagreements import Verdict, disagreement, verdict_of
from tests.fuzzing.checks.ways import Settings
from tests.fuzzing.commands.engines import ByHypothesis, Programs
from tests.fuzzing.execution.compilers import COMPILER, TOO_LARGE
from tests.fuzzing.findings.shrinking import shrunk
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.strategies import programs
from tests.fuzzing.schedules.draw_schedule import REFUSED_SCHEDULES, random_schedule

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

MET = frozenset({
    "dense_fixed", "dense_fixed under a parent", "dense_varied", "compressed_fixed",
    "compressed_varied", "forest of depth 3", "fused axes: 2", "fused axes: 3", "attached axis",
    "iterations in sequence inside another", "combine", "lookup misses", "fill values read",
    "padding skipped", "allocated buffer", "scatter", "an axis of length 0", "NaN",
})  # fmt: skip
"""Features that even a few programs must have."""


@pytest.fixture(autouse=True)
def threads():
    before = gossamer.get_num_threads()
    yield
    gossamer.set_num_threads(before)


def test_programs_mean_the_same_at_every_stage_and_as_machine_code():
    met: Counter[str] = Counter()
    for seed in range(60):
        program = draw_program(Random(seed))
        verdict = verdict_of(program, native=seed % 4 == 0)
        assert verdict == Verdict(), f"{seed}: {verdict}\n{program.text}"
        met.update(census(program))
    assert met.keys() >= MET


@settings(max_examples=15, derandomize=True, deadline=None, database=None)
@given(programs(), st.sampled_from((False, False, True)))
def test_programs_of_hypothesis_mean_the_same(program, is_native):
    assert verdict_of(program, native=is_native) in (Verdict(), Verdict(refusal=TOO_LARGE))


def test_a_run_of_hypothesis_is_repeated_by_its_number():
    engine, how = ByHypothesis(each=6), Settings("a seed", native=0, scheduled=0)
    tallies = [Programs() for _ in range(3)]
    for number, tally in zip((5, 5, 6), tallies, strict=True):
        engine.judge(number, tally, settings=how)
    assert [tally.judged for tally in tallies] == [6, 6, 6]
    assert tallies[0].met == tallies[1].met != tallies[2].met
    assert engine.suspect(5, how) is None


def test_scheduled_programs_mean_the_same():
    refused: Counter[str] = Counter()
    for seed in range(25):
        rng = Random(f"scheduled {seed}")
        program = draw_program(rng)
        schedule = random_schedule(rng, program.module)
        verdict = verdict_of(program, native=seed % 4 == 0, schedule=schedule)
        assert verdict.disagreement is None, f"{seed}: {verdict.disagreement}\n{program.text}"
        assert verdict.refusal in (None, *REFUSED_SCHEDULES)
        refused.update([verdict.refusal] if verdict.refusal else [])
    assert refused.total() < 8, refused


def test_a_program_that_is_wrong_is_made_smaller():
    def swapped(module: Module) -> Module:
        """A defective pass that replaces differences by sums."""

        def rule(node):
            is_difference = isinstance(node, Binary) and node.op == "sub"
            return replace(node, op="add") if is_difference else None

        def of(function: Function) -> Function:
            body = tuple(rewrite(stmt, rule) for stmt in function.body)
            return replace(function, body=body)

        return replace(module, functions=tuple(map(of, module.functions)))

    broken = COMPILER.replaced(
        "lower_iterations", lambda m: COMPILER.pass_of("lower_iterations")(swapped(m))
    )
    program = next(
        drawn for drawn in map(draw_program, map(Random, range(100))) if disagreement(drawn, broken)
    )
    smaller = shrunk(program, lambda candidate: bool(disagreement(candidate, broken)))
    assert disagreement(smaller, broken)
    assert disagreement(smaller) is None
    assert len(list(walk(smaller.module))) < 60
