"""Primitives that move loops keep the effect of inits, in programs where another place would change the
result.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_schedule import apply, replay

SUM = """
for t in T.serial(3):
    for i in T.serial(8):
        for j in T.serial(8):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
"""
DIAGONAL = """
for i in T.serial(8):
    for t in T.serial(3):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, i])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
"""
ONE_TERM = SUM.replace("j in T.serial(8)", "j in T.serial(1)")
MEETING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[T.int64(P[vi])] = 0.0
            V[T.int64(P[vi])] = V[T.int64(P[vi])] + X[vi, vj]
"""
HALVING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = V[vi] * 0.5
            V[vi] = V[vi] + X[vi, vj]
"""
NEVER = """
for i in T.serial(8):
    for j in T.serial(8):
        for t in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
"""
FROM_CHANGING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = W[7 - vi]
            V[vi] = V[vi] + X[vi, vj]
        with T.block("count"):
            wi, wj = T.axis.remap("SS", [i, j])
            W[wi] = 1.0
"""
TRIANGLE = SUM.replace(
    "                vi, vj", "                T.where(i + j < 8)\n                vi, vj"
)
CONDITIONED = """
for j in T.serial(8):
    for i in T.serial(8):
        if i + j < 5:
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
"""
REFUSED = {
    "a loop that selects nothing, into the reduction": (SUM, "reorder", ("j", "t")),
    "a loop that selects nothing, out of the reduction": (DIAGONAL, "reorder", ("t", "i")),
    "a reduction of one term, around what selects nothing": (ONE_TERM, "reorder", ("j", "t")),
    "a loop that selects nothing, fused with the reduction": (SUM, "fuse", ("t", "i", "j")),
    "elements that may meet, fused with the reduction": (MEETING, "fuse", ("i", "j")),
    "an init that does not always do the same": (HALVING, "fuse", ("i", "j")),
    "an init of what may never run": (NEVER, "fuse", ("j", "t")),
    "an init that comes to run under a condition": (CONDITIONED, "fuse", ("j", "i")),
    "an init that comes to run under a predicate": (TRIANGLE, "fuse", ("i", "j")),
    "an init from what other iterations change": (FROM_CHANGING, "fuse", ("i", "j")),
}


@pytest.mark.parametrize(("body", "op", "loops"), REFUSED.values(), ids=REFUSED.keys())
def test_inits_stay_in_place(program, body, op, loops):
    with pytest.raises(ScheduleError, match="init") as caught:
        apply(program(body), Step(op, {"loops": loops}))
    assert caught.value.code == f"schedule.{op}.not_proved"


COUNTING = """
for i in T.serial(8):
    for t in T.serial(2):
        for j in T.serial(2):
            for k in T.serial(i + 1):
                with T.block("sum"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.reduce(16, j * 8 + k)
                    with T.init():
                        V[vi] = 0.0
                    V[vi] = V[vi] + X[vi, vj // 2]
"""
FACTORS = [
    Step("split", {"loop": "k", "factors": (2, None)}),
    Step("fuse", {"loops": ("j", "k")}),
]


@pytest.mark.parametrize("step", FACTORS, ids=["split", "fuse"])
def test_an_init_leaves_what_a_factor_depends_on_only_if_each_element_is_there_once(program, step):
    """Each loop that the factors depend on feeds the iterator of the reduction."""
    with pytest.raises(ScheduleError, match="init of block 'sum'") as caught:
        apply(program(COUNTING), step)
    assert caught.value.code == f"schedule.{step.op}.not_proved"
    sums = COUNTING.replace("16, j", "32, t * 16 + j").replace("vj // 2", "vj // 4")
    np.testing.assert_array_equal(values(apply(program(sums), step).module), values(program(sums)))


CORNER = """
for k in T.serial(2):
    for i in T.serial(8):
        if i + k < 6:
            for j in T.serial(k + 1):
                with T.block("sum"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        V[vi] = 0.0
                    V[vi] = V[vi] + X[vi, vj]
"""


@pytest.mark.parametrize("loops", ["k", "j"])
def test_an_init_stays_under_a_condition_on_what_comes_to_feed_the_reduction(program, loops):
    """After the step a loop feeds the reduction, so the init runs outside of that loop and of conditions on
    it."""
    body = CORNER.replace("T.serial(2)", "T.serial(1)") if loops == "k" else CORNER
    with pytest.raises(ScheduleError, match="init of block 'sum'") as caught:
        apply(program(body), Step("split", {"loop": "j", "factors": (2, None)}))
    assert caught.value.code == "schedule.split.not_proved"
    fixed = body.replace("T.serial(k + 1)", "T.serial(2)")
    changed = apply(program(fixed), Step("split", {"loop": "j", "factors": (2, None)})).module
    np.testing.assert_array_equal(values(changed), values(program(fixed)))


TWO_INITS = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
        with T.block("second"):
            wi, wj = T.axis.remap("SR", [i, j])
            with T.init():
                W[wi] = V[wi]
            W[wi] = W[wi] + V[wi] * Y[wi, wj]
"""


@pytest.mark.parametrize("loop", ["i", "j"])
def test_an_init_does_not_pass_what_it_reads(program, loop):
    module = program(TWO_INITS)
    with pytest.raises(ScheduleError, match="init of block 'second'") as caught:
        apply(module, Step("decompose_reduction", {"block": "second", "loop": loop}))
    assert caught.value.code == "schedule.decompose_reduction.not_proved"


def test_inits_are_decomposed_in_their_order(program):
    module = program(TWO_INITS)
    steps = [
        Step("decompose_reduction", {"block": name, "loop": "j"}) for name in ("first", "second")
    ]
    changed = replay(module, steps)
    np.testing.assert_array_equal(values(changed), values(module))


COLUMNS = """
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("sum"):
            vi = T.axis.reduce(8, i)
            vj = T.axis.spatial(64, j)
            with T.init():
                V[vj] = 0.0
            V[vj] = V[vj] + X[vi, vj]
"""


def test_elements_of_iterations_that_a_split_adds_are_not_initialized(program):
    """The added iterations are those of reduction loops, which select elements through the extent of another
    loop."""
    module = program(COLUMNS)
    changed = apply(module, Step("split", {"loop": "i", "factors": (None, 3)})).module
    np.testing.assert_array_equal(values(changed), values(module))


def test_a_start_is_not_read_beyond_the_end_of_a_split_loop(program):
    module = program(
        MEETING.replace("T.serial(8):\n        with", "T.serial(T.int64(P[i]), 8):\n        with")
    )
    changed = apply(module, Step("split", {"loop": "i", "factors": (2, 8)})).module
    np.testing.assert_array_equal(values(changed), values(module))


READ = """vi = T.axis.spatial(8, T.int64(P[i]))
            vj = T.axis.reduce(8, j)"""


def values(module):
    inputs = np.random.default_rng(0).integers(-3, 4, (3, 8, 8)).astype(np.float32)
    result = np.full(64, 7, np.float32)
    arrays = {"x": inputs[0], "y": inputs[1], "z": inputs[2], "v": result, "n": 0}
    weights = inputs[2].ravel().copy()
    run(module, arrays | {"w": weights, "p": np.zeros(9, np.int32)})
    return result, weights


@pytest.mark.parametrize(
    ("op", "loops"), [("reorder", ("i", "t")), ("reorder", ("j", "i")), ("fuse", ("i", "j"))]
)
def test_inits_that_stay_in_place(program, op, loops):
    """Within each iteration of `t`, elements are initialized before the first term."""
    module = program(SUM)
    changed = apply(module, Step(op, {"loops": loops})).module
    np.testing.assert_array_equal(values(changed), values(module))


def test_an_iterator_is_not_read_beyond_the_end_of_a_split_loop(program):
    body = MEETING.replace('vi, vj = T.axis.remap("SR", [i, j])', READ)
    module = program(body.replace("V[T.int64(P[vi])]", "V[vi]"))
    changed = apply(module, Step("split", {"loop": "i", "factors": (2, 8)})).module
    np.testing.assert_array_equal(values(changed), values(module))


BLOCKS = """
for i in T.serial(4):
    for j in T.serial(2):
        with T.block("rows"):
            wi, wj = T.axis.remap("SR", [i, j])
            with T.init():
                for a in T.serial(LENGTH):
                    with T.block("clear"):
                        ui = T.axis.spatial(16, START + a)
                        V[ui] = 0.0
            for b in T.serial(LENGTH):
                with T.block("sum"):
                    vi = T.axis.spatial(16, START + b)
                    vj = T.axis.reduce(2, wj)
                    V[vi] = V[vi] + X[vi, vj]
"""


def test_loops_of_an_init_count_where_iterations_may_initialize_the_same_elements(program):
    """Blocks of 1, 2, 3 and 4 elements that start at 0, 1, 2 and 3 overlap; adjacent blocks of 2 do not."""
    overlapping = program(BLOCKS.replace("LENGTH", "wi + 1").replace("START", "wi"))
    step = Step("decompose_reduction", {"block": "rows", "loop": "i"})
    with pytest.raises(ScheduleError, match="init of block 'rows'") as caught:
        apply(overlapping, step)
    assert caught.value.code == "schedule.decompose_reduction.not_proved"
    apart = program(BLOCKS.replace("LENGTH", "2").replace("START", "wi * 2"))
    np.testing.assert_array_equal(values(apply(apart, step).module), values(apart))


def test_an_init_of_rows_that_may_conflict_is_not_decomposed_within_their_loop(program):
    """It would reset the sum that an earlier row of the same element has accumulated."""
    with pytest.raises(ScheduleError, match="initialize different elements") as caught:
        apply(program(MEETING), Step("decompose_reduction", {"block": "sum", "loop": "j"}))
    assert caught.value.code == "schedule.decompose_reduction.not_proved"


def test_a_blockized_init_of_rows_that_may_conflict_runs_once(program):
    module = program(MEETING)
    changed = apply(module, Step("blockize", {"loop": "j"})).module
    np.testing.assert_array_equal(values(changed), values(module))
    assert values(module)[0][0] == np.random.default_rng(0).integers(-3, 4, (3, 8, 8))[0].sum()
