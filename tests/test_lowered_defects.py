"""Random programs of the later stages catch each of these compilers, which have a defect."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from gossamer_ir.errors import GossamerError
from gossamer_ir.nodes import Module
from tests.generated.broken_compilers import Defect
from tests.generated.compilers import BEFORE, COMPILER, Compiler, Pass
from tests.generated.lowered.broken_passes import DEFECTS
from tests.generated.lowered.drawing import draw_lowered
from tests.generated.lowered.judging import judged
from tests.generated.lowered.program import Lowered

PROGRAMS = 1500
"""A defect that so many programs do not show is not caught."""


@cache
def program(number: int) -> Lowered:
    return draw_lowered(Random(f"defects/{number}"), "loop")


@cache
def before(number: int) -> dict[str, Module]:
    """The module before each pass that it comes to."""
    module, found = program(number).module, {}
    for name, lower in COMPILER.passes[BEFORE[module.stage] :]:
        found[name] = module
        try:
            module = lower(module)
        except GossamerError:
            break
    return found


def _made(lower: Pass, module: Module) -> Module | str:
    try:
        return lower(module)
    except (GossamerError, LookupError) as error:
        return str(error)


def is_shown_by(defect: Defect, broken: Compiler, number: int) -> bool:
    """Whether a program means something else because of the defect. Nothing has to be interpreted where the
    pass makes the same of it with and without."""
    module = before(number).get(defect.of)
    if module is None:
        return False
    right, wrong = (_made(found.pass_of(defect.of), module) for found in (COMPILER, broken))
    if right == wrong:
        return False
    finding = judged(program(number), broken)
    return finding is not None and not finding.is_refusal and judged(program(number)) is None


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_compiler_with_a_defect_is_caught(defect: Defect) -> None:
    broken = defect.compiler()
    assert any(is_shown_by(defect, broken, number) for number in range(PROGRAMS))
