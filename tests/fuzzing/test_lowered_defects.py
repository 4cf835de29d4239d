"""The fuzzer of the later stages detects each of a list of planted defects in passes, primitives and code
generation.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from gossamer.targets.resolve_target import resolve_target
from gossamer_generic_cpu.codegen.compiler import llvm_text
from gossamer_ir.errors import GossamerError
from gossamer_ir.nodes import Module
from gossamer_lower import lower_to_flat
from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.defects import broken_primitives
from tests.fuzzing.defects.broken_code import DEFECTS as CODE
from tests.fuzzing.defects.broken_code import Defect as CodeDefect
from tests.fuzzing.defects.broken_compilers import Defect
from tests.fuzzing.defects.broken_lowered_steps import DEFECTS as STEPS
from tests.fuzzing.defects.broken_passes import DEFECTS
from tests.fuzzing.execution.compilers import BEFORE, COMPILER, Compiler, Pass
from tests.fuzzing.lowered.judging import MACHINE_CODE, finding_of, interpreted
from tests.fuzzing.lowered.native_process import NativeProcess
from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.lowered.programs.lowered_program import Lowered
from tests.fuzzing.lowered.step_drawing import Steps, replayed

pytestmark = pytest.mark.unserialized

PROGRAMS = 4000
"""A defect that so many programs do not reveal counts as undetected."""


@cache
def program(number: int) -> Lowered:
    return draw_lowered(Random(f"defects/{number}"), "loop")


@cache
def before(number: int) -> dict[str, Module]:
    """The module before each pass that is applied to it."""
    module, changed = program(number).module, {}
    for name, lower in COMPILER.passes[BEFORE[module.stage] :]:
        changed[name] = module
        try:
            module = lower(module)
        except GossamerError:
            break
    return changed


def _made(lower: Pass, module: Module) -> Module | str:
    try:
        return lower(module)
    except (GossamerError, LookupError) as error:
        return str(error)


def is_shown_by(defect: Defect, broken: Compiler, number: int) -> bool:
    """Return whether a program has another meaning because of the defect. If the pass gives the same module
    with and without the defect, nothing is interpreted."""
    module = before(number).get(defect.of)
    if module is None:
        return False
    right, wrong = (_made(compiler.pass_of(defect.of), module) for compiler in (COMPILER, broken))
    if right == wrong:
        return False
    finding = finding_of(program(number), broken)
    return finding is not None and not finding.is_refusal and finding_of(program(number)) is None


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_compiler_with_a_defect_is_caught(defect: Defect, require_shown_within) -> None:
    broken = defect.compiler()
    require_shown_within(PROGRAMS, lambda number: is_shown_by(defect, broken, number))


SEQUENCES = 2000


@cache
def blocks(number: int) -> Lowered:
    return draw_lowered(Random(f"steps/{number}"), "loop", has_blocks=True)


def is_shown_by_steps(
    defect: broken_primitives.Defect, builder: type[ScheduleBuilder], number: int
) -> bool:
    """Return whether steps that are correct without the defect change the meaning of a program."""
    drawn = blocks(number)
    steps = Steps(Random(f"{defect.of}/{number}"), builder=builder, weights=defect.weights)
    made = steps(drawn.module)
    right = replayed(steps.traces)(drawn.module)
    if made == right or interpreted(drawn, made, "the schedule") is None:
        return False
    return interpreted(drawn, right, "the schedule") is None


@pytest.mark.parametrize("defect", STEPS, ids=lambda defect: defect.says)
def test_a_primitive_with_a_defect_is_caught(
    defect: broken_primitives.Defect, require_shown_within
) -> None:
    builder = defect.builder()
    require_shown_within(SEQUENCES, lambda number: is_shown_by_steps(defect, builder, number))


@cache
def flat(number: int) -> Module | None:
    """The flat module of a program; None if the compiler rejects it."""
    try:
        return COMPILER.math(lower_to_flat(program(number).module))
    except GossamerError:
        return None


def _text(number: int) -> str | None:
    """The LLVM IR of a program; None if there is none."""
    module = flat(number)
    try:
        return module and llvm_text(module, resolve_target("generic-cpu")[1])
    except GossamerError:
        return None


def is_shown_by_code(defect: CodeDefect, broken: NativeProcess, number: int) -> bool:
    """Return whether the defect changes the machine code, and its results."""
    right = _text(number)
    with defect.planted():
        if right is None or right == _text(number):
            return False
    finding = finding_of(program(number), process=broken)
    if finding is None or finding.where != MACHINE_CODE or finding.is_refusal:
        return False
    with NativeProcess() as whole:
        return finding_of(program(number), process=whole) is None


@pytest.mark.parametrize("defect", CODE, ids=lambda defect: defect.says)
def test_code_generation_with_a_defect_is_caught(defect: CodeDefect, require_shown_within) -> None:
    with NativeProcess(CODE.index(defect)) as broken:
        require_shown_within(PROGRAMS, lambda number: is_shown_by_code(defect, broken, number))
