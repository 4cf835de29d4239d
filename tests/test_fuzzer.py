"""The fuzzer finds what is wrong: each of these compilers has a defect, and is caught."""

from __future__ import annotations

from random import Random

import pytest

from gossamer_ir.nodes import Module
from tests.generated.broken_compilers import DEFECTS, Defect
from tests.generated.compilers import Scheduler, unscheduled
from tests.generated.disagreements import disagreement
from tests.generated.drawing import draw_program
from tests.generated.schedules import scheduled

PROGRAMS = 300
"""A defect that so many programs do not show is not caught."""


def scheduler(defect: Defect, seed: int) -> Scheduler:
    if not defect.needs_schedule:
        return unscheduled
    rng = Random(seed)

    def schedule(module: Module) -> Module:
        return scheduled(rng, module, 8) if module.stage == "loop" else module

    return schedule


def is_shown_by(defect: Defect, seed: int, broken) -> bool:
    """Whether a program disagrees with its oracle because of the defect."""
    program = draw_program(Random(seed))
    if disagreement(program, broken, schedule=scheduler(defect, seed)) is None:
        return False
    return disagreement(program, schedule=scheduler(defect, seed)) is None


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_compiler_with_a_defect_is_caught(defect: Defect) -> None:
    broken = defect.compiler()
    assert any(is_shown_by(defect, seed, broken) for seed in range(PROGRAMS))
