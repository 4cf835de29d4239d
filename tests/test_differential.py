"""Random programs, random legal schedules: every stage and the machine code mean what NumPy says."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

import gossamer
from gossamer.build import resolve
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics, verify
from tests.generated import stages
from tests.generated.programs import Program, draw_program

REFUSALS = frozenset(
    {"llvm.lanes", "lower.let_above_block", "lower.unmasked_lane", "lower.vectorize"}
)
"""Schedules and programs may be refused for these reasons."""


def require_expected(program: Program, arrays, what: str) -> None:
    for name, expected in program.expected.items():
        np.testing.assert_array_equal(arrays[name], expected.ravel(), err_msg=f"{name}, {what}")


def fresh(program: Program) -> dict[str, np.ndarray]:
    return {name: array.flatten() for name, array in program.arrays.items()}


def check(rng: Random, program: Program) -> str:
    """Runs a program at every stage; how far it came ("native", or the code of a refusal)."""
    try:
        module = verify(parse_module(program.text))
        for current in stages(rng, module, by_rules=program.by_rules):
            found = [(item.code, item.message) for item in diagnostics(current)]
            assert not found, (current.stage, found)
            arrays = fresh(program)
            run(current, {**arrays, **program.sizes}, chunks=rng.choice((1, 3)))
            require_expected(program, arrays, f"stage {current.stage}")
        backend, target = resolve("generic-cpu")
        kernel = backend.load(backend.compile(current, target))
    except UnsupportedError as error:
        return error.code
    assert parse_module(print_module(current)) == current
    for count in (1, 2):
        arrays = fresh(program)
        gossamer.set_num_threads(count)
        kernel(**arrays, **program.sizes)
        require_expected(program, arrays, f"{count} threads")
    return "native"


@pytest.fixture
def threads():
    before = gossamer.get_num_threads()
    yield
    gossamer.set_num_threads(before)


@pytest.mark.parametrize(
    ("special", "count"), [(False, 50), (True, 16)], ids=["integers", "nan and infinity"]
)
def test_programs_mean_the_same_at_every_stage_and_as_machine_code(threads, capsys, special, count):
    """What is left of the output is about the program that failed."""
    outcomes: Counter[str] = Counter()
    for seed in range(count):
        rng = Random(f"{seed} {special}")
        program = draw_program(rng, special=special)
        print(f"Seed {seed}, of {', '.join(program.kinds)}:\n{program.text}")
        outcomes[check(rng, program)] += 1
        capsys.readouterr()
    assert set(outcomes) - {"native"} <= REFUSALS, outcomes
    assert outcomes["native"] >= 0.75 * outcomes.total(), outcomes
