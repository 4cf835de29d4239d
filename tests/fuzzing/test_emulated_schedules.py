"""Default schedules of the scripts of the testkit, emulated at every vector length: those for scalable
vectors, and those for fixed ones after all of their vectors have become scalable.
"""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.nodes import For, Module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import collect
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.execution.compilers import COMPILER, EMULATED, Scheduler
from tests.fuzzing.programs.handwritten import parsed, usable, with_arrays
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.converted_lanes import with_converted_lanes
from tests.fuzzing.schedules.draw_schedule import by_rules

pytestmark = [
    pytest.mark.unserialized,
    pytest.mark.no_error_examples,
    pytest.mark.usefixtures("emulated"),
]

FEATURES = 40
LENGTHS = (0, 1, 4, 5, 21)
FIXED = "generic-cpu:vector_bits=256"


def coordinate_scripts() -> list[str]:
    return [name for name in usable() if parsed(name).stage == "coordinate"]


def variants(name: str) -> list[Module]:
    """A script, and the same with a known number of features."""
    module = parsed(name)
    params = {param.name for param in module.functions[0].params}
    specialized = [specialize(module, {"feat_size": FEATURES})] if "feat_size" in params else []
    return [module, *specialized]


@cache
def drawn(name: str, number: int) -> Program:
    """A variant of a script with arrays. The interpreter takes long to compute the result."""
    rng, module, program = Random(f"{name}/{number}"), variants(name)[number], None
    while program is None:
        program = with_arrays(module, rng, lengths=LENGTHS)
    return program


def require_right(program: Program, schedule: Scheduler, *, is_emulated: bool) -> None:
    compiler = EMULATED if is_emulated else COMPILER
    verdict = verdict_of(program, compiler, native=True, schedule=schedule, vscale=None)
    assert verdict == Verdict(), f"{verdict}\n{program!r}"


@pytest.mark.parametrize("name", coordinate_scripts())
def test_default_schedules_are_right_at_every_vector_length(name):
    for number, module in enumerate(variants(name)):
        schedule = by_rules(module, "llvm-sve")
        require_right(drawn(name, number), schedule, is_emulated=True)


WITH_FIXED_LANES = {"tiled_csr_spmm"}
"""Rows that a tile packs have a fixed size. With masked scalable vectors, 128 features take 1.5 times as many
instructions at 128 bits (and 0.8 times at 256)."""


@pytest.mark.parametrize("name", sorted({*coordinate_scripts()} - WITH_FIXED_LANES))
def test_default_schedules_have_no_fixed_lanes(name):
    for module in variants(name):
        stages = COMPILER.stages(module, by_rules(module, "llvm-sve"))
        scheduled = next(stage for stage in stages if stage.stage == "loop")
        lanes = [loop.extent for loop in collect(For, scheduled) if loop.kind == "vectorized"]
        assert all(integer_value(count) is None for count in lanes)


@pytest.mark.parametrize("name", coordinate_scripts())
def test_default_schedules_for_fixed_lanes_become_scalable_and_fixed_again(name):
    refused = list[ScheduleError]()
    for number, module in enumerate(variants(name)):
        schedule, program = by_rules(module, FIXED), drawn(name, number)
        scalable = with_converted_lanes(schedule, "native", refused=refused.append)
        require_right(program, scalable, is_emulated=True)
        fixed = with_converted_lanes(schedule, "native", 8, refused=refused.append)
        require_right(program, fixed, is_emulated=False)
    assert refused == []
