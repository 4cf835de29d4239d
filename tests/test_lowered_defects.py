"""Random programs of the later stages find what is wrong: each of these compilers and primitives has a defect,
and is caught."""

from __future__ import annotations

from random import Random

import pytest

from gossamer_ir.errors import GossamerError
from gossamer_ir.nodes import Module
from tests.generated.broken_compilers import Defect
from tests.generated.compilers import BEFORE, COMPILER, Compiler
from tests.generated.lowered.broken_passes import DEFECTS
from tests.generated.lowered.drawing import draw_lowered
from tests.generated.lowered.judging import judged
from tests.generated.lowered.program import Lowered

PROGRAMS = 1500
"""A defect that so many programs do not show is not caught."""


def _made(program: Lowered, compiler: Compiler) -> list[Module] | str:
    """The module after each pass."""
    module, found = program.module, []
    for _, lower in compiler.passes[BEFORE[module.stage] :]:
        try:
            module = lower(module)
        except (GossamerError, LookupError) as error:
            return f"{found} {error}"
        found.append(module)
    return found


def is_shown_by(broken: Compiler, number: int) -> bool:
    """Whether a program means something else because of the defect. Nothing has to be interpreted where the
    compiler makes the same of it with and without."""
    program = draw_lowered(Random(f"defects/{number}"), "loop")
    if _made(program, broken) == _made(program, COMPILER):
        return False
    finding = judged(program, broken)
    return finding is not None and not finding.is_refusal and judged(program) is None


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_compiler_with_a_defect_is_caught(defect: Defect) -> None:
    broken = defect.compiler()
    assert any(is_shown_by(broken, number) for number in range(PROGRAMS))
