"""The fuzzer of schedules detects each of a list of planted defects in primitives."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from gossamer_ir.nodes import Module
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.checks.disagreements import verdict_of
from tests.fuzzing.defects.broken_primitives import DEFECTS, Defect
from tests.fuzzing.execution.compilers import BEFORE, COMPILER
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.sequences import Sequence, is_too_large, kept

pytestmark = pytest.mark.unserialized

SEQUENCES = 500
"""A defect that so many sequences do not reveal counts as undetected."""


def is_told_apart(program: Program, sequence: Sequence) -> bool:
    """Return whether the defect changes the module that a sequence (drawn here) makes; otherwise no result
    needs to be compared. Large programs are skipped: they take long, and small ones reveal the defect as
    well."""
    module = program.module
    names = ("lower_iterations", "lower_buffers")[BEFORE[module.stage] :]
    for lower in (*map(COMPILER.pass_of, names), None):
        made: Module = sequence(module)
        if is_too_large(made):
            return False
        if made != kept(sequence.traces, module):
            return True
        module = lower(made) if lower else module
        # Lowering may multiply the size of nested look-ups; drawing steps for the result would take minutes.
        if is_too_large(module):
            return False
    return False


def is_shown_by(defect: Defect, number: int, builder: type[ScheduleBuilder]) -> bool:
    """Return whether steps that are correct without the defect change the meaning of a program."""
    rng = Random(f"{defect.of}/{number}")
    program = defect.draw(rng)
    sequence = Sequence(rng, builder=builder, weights=defect.weights)
    if not is_told_apart(program, sequence):
        return False

    def disagrees(made_by: type[ScheduleBuilder]) -> bool:
        schedule = partial(kept, sequence.traces, builder_type=made_by)
        return verdict_of(program, schedule=schedule).disagreement is not None

    return disagrees(builder) and not disagrees(ScheduleBuilder)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_primitive_with_a_defect_is_caught(defect: Defect, require_shown_within) -> None:
    builder = defect.builder()
    require_shown_within(SEQUENCES, lambda number: is_shown_by(defect, number, builder))
