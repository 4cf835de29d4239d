"""Random programs of the position, loop and flat stage that write indices, bounds and conditions mean the
same before and after every pass, after random schedules, and as machine code. `nox -s fuzz -- --lowered`
runs more of them.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.script import parse_module
from gossamer_lower import lower_to_flat
from gossamer_schedule.trace.primitive_table import PRIMITIVES
from tests.fuzzing.checks.wrong_calls import CALLS, draw_call
from tests.fuzzing.commands import lowered_programs
from tests.fuzzing.commands.lowered_programs import (
    OF_COORDINATES,
    Programs,
    drawn,
    judge,
    native_process,
)
from tests.fuzzing.lowered.evaluator import evaluated
from tests.fuzzing.lowered.features import REQUIRED, features
from tests.fuzzing.lowered.judging import finding_of
from tests.fuzzing.lowered.native_process import NativeProcess, Outcome
from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.lowered.step_drawing import COMMON, WEIGHTS
from tests.fuzzing.oracle.coordinate_tables import Undecided
from tests.fuzzing.schedules.argument_generators import GENERATORS, NOT_DRAWN

pytestmark = pytest.mark.unserialized

PLAIN = {"seed": "tests", "native": 0.15, "scheduled": 0.0}
SCHEDULED = {"seed": "tests", "native": 0.1, "scheduled": 1.0}


@pytest.fixture(scope="module", autouse=True)
def process():
    yield
    native_process().close()
    native_process.cache_clear()


def test_programs_mean_the_same_before_and_after_each_pass():
    tally = Programs()
    for number in range(60):
        judge(number, tally, **PLAIN)
    assert tally.failures == []
    assert tally.native > 3
    assert tally.refused.total() < 12, tally.refused


@pytest.mark.parametrize("stage", ["loop", "flat"])
def test_programs_without_axes_mean_the_same_before_and_after_each_pass(stage):
    for number in range(25):
        program = draw_lowered(Random(f"tests/{stage}/{number}"), stage)
        finding = finding_of(program, process=native_process() if number % 8 == 0 else None)
        assert finding is None or finding.is_refusal, f"{number}: {finding}\n{program}"


def test_schedules_change_no_meaning():
    tally = Programs()
    for number in range(30):
        judge(number, tally, **SCHEDULED)
    assert tally.failures == []
    assert tally.accepted.total() > 50
    assert len(tally.accepted) > 10


def test_each_primitive_is_drawn_or_has_a_reason():
    unsafe = {op for op in PRIMITIVES if op.startswith("unsafe_")}
    assert GENERATORS.keys() == PRIMITIVES.keys() - unsafe - NOT_DRAWN.keys(), (
        "the user vouches for what is unsafe"
    )
    assert GENERATORS.keys() >= OF_COORDINATES, "there are no sparse iterations at the later stages"
    assert all(WEIGHTS.get(op, COMMON) > 0 for op in GENERATORS)


def test_everything_that_has_to_be_met_is_drawn():
    tally = Programs()
    for number in range(200):
        program = drawn(number, **PLAIN).program
        tally.met.update(features(program))
        tally.judged += 1
    rare = {name for name, count in REQUIRED.items() if count < 500}
    tally.judged //= 2  # a few programs meet some of it less often than many do
    assert set(lowered_programs.too_seldom(tally)) <= rare
    assert tally.met.keys() <= {*REQUIRED, "stage flat"}


CHASE = """
@T.prim_func
def main(x: T.handle, y: T.handle, c: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (4,), "int32")
    Y = T.match_buffer(y, (4,), "int32")
    C = T.match_buffer(c, (1,), "int64")
    while C[0] < %s:
        Y[C[0]] = X[C[0]] + 1
        C[0] = C[0] + 1
"""


def _called() -> dict[str, np.ndarray]:
    return {"x": np.arange(4, dtype=np.int32), "y": np.zeros(4, np.int32), "c": np.array([1])}


def test_the_evaluator_says_what_a_program_does_and_where_it_stops():
    done = evaluated(parse_module(CHASE % 3), _called(), {})
    assert done is not None
    assert done["y"].tolist() == [0, 2, 3, 0]
    assert done["c"].tolist() == [3]
    assert evaluated(parse_module(CHASE % 9), _called(), {}) is None


def test_the_evaluator_says_nothing_of_elements_that_nothing_was_stored_to():
    text = (CHASE % 3).replace("    while", '    R = T.alloc_buffer((4,), "int32")\n    while')
    with pytest.raises(Undecided, match="nothing was stored to"):
        evaluated(parse_module(text.replace("X[C[0]]", "R[C[0]]")), _called(), {})


DOMAIN = """
@T.prim_func
def main(c: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    C = T.match_buffer(c, (1,), "int64")
    Y = T.match_buffer(y, (4,), "int32")
    for i in T.serial(2):
        with T.block("b"):
            vi = T.axis.spatial(C[i] + 2, i)
            Y[vi] = 1
"""


def test_a_domain_that_reads_out_of_bounds_decides_nothing():
    """Kernels do not evaluate domains; the interpreter stops at them, without the name of a buffer."""
    module, arrays = parse_module(DOMAIN), {"c": np.array([1]), "y": np.zeros(4, np.int32)}
    with pytest.raises(Undecided, match="a domain that reads out of bounds"):
        evaluated(module, arrays, {})
    with pytest.raises(InterpreterError, match="The domain of 'vi' in block 'b'") as caught:
        run(module, arrays)
    assert caught.value.buffer is None


def test_a_process_that_dies_is_a_finding_and_another_one_goes_on():
    flat = lower_to_flat(parse_module(CHASE % 3))
    with NativeProcess() as running:
        assert running.run(flat, _called(), {}).arrays["y"].tolist() == [0, 2, 3, 0]
        running._process.kill()
        assert running.run(flat, _called(), {}) == Outcome("the process dies: exit code -9")
        assert running.run(flat, _called(), {}).arrays["y"].tolist() == [0, 2, 3, 0]


def test_random_calls_end_in_a_result_or_a_gossamer_error():
    kinds: Counter[str] = Counter()
    for number in range(200):
        call = draw_call(Random(f"tests/typed/{number}"))
        assert call.wrong() is None, f"{number}: {call.says}"
        kinds[call.kind] += 1
    assert kinds.keys() == CALLS.keys()
