"""The fuzzer detects each of a list of planted defects in the compiler."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from random import Random

import numpy as np
import pytest

from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from tests.fuzzing.checks.disagreements import disagreement
from tests.fuzzing.commands.processes import BATCH, Failure, Tally, Task, TooLong, at_most
from tests.fuzzing.defects.broken_compilers import DEFECTS, Defect
from tests.fuzzing.execution.array_placement import Passed, Place
from tests.fuzzing.execution.compilers import COMPILER, Compiler, Scheduler, unscheduled
from tests.fuzzing.execution.races import Race, require_no_race
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.draw_schedule import random_schedule, scheduled

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

PROGRAMS = 3000
"""A defect that so many programs do not reveal counts as undetected."""


def drawn(defect: Defect, seed: int) -> Program:
    return draw_program(Random(seed), is_common=True if defect.schedule == "rules" else None)


def scheduler(defect: Defect, program: Program, seed: int) -> Scheduler:
    rng = Random(seed)

    def schedule(module: Module) -> Module:
        return scheduled(rng, module, 8) if module.stage == "loop" else module

    match defect.schedule:
        case "none":
            return unscheduled
        case "steps":
            return schedule
        case "rules":
            return random_schedule(rng, program.module, rules=0.6)


def is_shown_by(defect: Defect, seed: int, broken: Compiler) -> bool:
    """Return whether a program disagrees with its oracle because of the defect."""
    program = drawn(defect, seed)

    def disagrees(compiler: Compiler) -> bool:
        schedule = scheduler(defect, program, seed)
        return disagreement(program, compiler, schedule=schedule) is not None

    return disagrees(broken) and not disagrees(COMPILER)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.says)
def test_a_compiler_with_a_defect_is_caught(defect: Defect, require_shown_within) -> None:
    broken = defect.compiler()
    require_shown_within(PROGRAMS, lambda seed: is_shown_by(defect, seed, broken))


@pytest.mark.parametrize("place", [Place(), Place(4), Place(60)])
def test_bytes_beside_an_array_are_watched(place):
    passed = Passed(np.arange(5, dtype=np.float32), place)
    passed.array[-1] = 9
    assert passed.is_usable
    assert passed.has_clean_edges
    assert not passed.is_as_before
    ctypes.memset(passed.array.ctypes.data + passed.array.nbytes, 0, 1)
    assert not passed.has_clean_edges


def test_what_takes_too_long_is_stopped_and_what_follows_is_not():
    with pytest.raises(TooLong), at_most(0.01):
        time.sleep(60)
    with at_most(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_arrays_that_no_kernel_takes_are_told_apart():
    values = np.arange(5, dtype=np.int16)
    for place, is_usable in ((Place(2), True), (Place(1), False), (Place(step=2), False)):
        passed = Passed(values, place)
        assert passed.is_usable == is_usable
        assert np.array_equal(passed.array, values)


PARALLEL_STORES = """
@T.prim_func
def main(c: T.handle) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    C = T.match_buffer(c, (4,), "int64")
    for i in T.parallel({extent}):
        C[C[1]] = 4
"""


def test_a_race_by_an_index_that_the_store_changes_is_found():
    """The store changes the element from which its index was read, to one that is out of bounds."""
    require_no_race(parse_module(PARALLEL_STORES.format(extent=1)), {"c": np.array([3, 1, 2, 0])})
    with pytest.raises(Race, match="iterations 0 and 1"):
        require_no_race(
            parse_module(PARALLEL_STORES.format(extent=2)), {"c": np.array([3, 2, 2, 0])}
        )


PARALLEL_BOXES = """
@T.prim_func
def main(c: T.handle) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    C = T.match_buffer(c, (2, 2, 2), "int64")
    for i in T.parallel(2):
        for j in T.serial({start}, {start} + 1):
            C[j, j, j] = i
"""


def test_variables_as_indices_of_three_dimensions_are_those_of_the_elements():
    require_no_race(parse_module(PARALLEL_BOXES.format(start="i")), {"c": np.zeros((2, 2, 2), int)})
    with pytest.raises(Race, match="iterations 0 and 1"):
        require_no_race(
            parse_module(PARALLEL_BOXES.format(start="0")), {"c": np.zeros((2, 2, 2), int)}
        )


def judge_unless_broken(number: int, tally: Tally) -> None:
    """Judges an item; 3 raises an error, and the process of 5 ends."""
    if number == 3:
        raise ZeroDivisionError("three")
    if number == 5:
        os._exit(1)
    tally.judged += 1


def test_items_after_one_that_fails_or_crashes_are_judged():
    task = Task("numbers", judge_unless_broken, Tally)
    total = task.run(range(2 * BATCH), processes=1, seconds=600)
    assert total.judged == 2 * BATCH - 2
    assert sorted(total.failures) == [
        Failure(3, "ZeroDivisionError: three", is_verdict=False),
        Failure(5, "the process crashed", is_verdict=False),
    ]
