"""Moved blocks only use names that are bound at their new place: removed loops, lets and buffers."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import apply

CHAIN = """
Q = T.decl_buffer((8,), "float32")
for a in T.serial(8):
    with T.block("made"):
        va = T.axis.spatial(8, a)
        {made}
{between}
for i in T.serial(8):
    with T.block("used"):
        vi = T.axis.spatial(8, i)
        {used}
for k in T.serial(8):
    with T.block("last"):
        vk = T.axis.spatial(8, k)
        Y[0, vk] = {last}
"""
MADE, USED = "Q[va] = V[va]", "W[vi] = Q[vi]"


def chain(made=MADE, used=USED, between="", last="V[vk]"):
    return CHAIN.format(made=made, used=used, between=between, last=last)


OWN_LOOP = chain(made="Q[va] = V[va] + T.float32(a)", used="W[vi] = Q[vi] + T.float32(i)")
LET = chain(used="W[vi] = Q[vi] + f", between="f: T.float32 = V[3]")
ALLOCATED = chain(used="R[vi] = Q[vi]", between='R = T.alloc_buffer((8,), "float32")', last="R[vk]")
STEPS = {
    "compute_at": {"block": "made", "loop": "i"},
    "compute_inline": {"block": "made"},
    "reverse_compute_at": {"block": "used", "loop": "a"},
    "reverse_compute_inline": {"block": "used"},
}
CASES = [
    (OWN_LOOP, "compute_at", None),
    (OWN_LOOP, "compute_inline", "predicate"),
    (OWN_LOOP, "reverse_compute_at", None),
    (OWN_LOOP, "reverse_compute_inline", "predicate"),
    (LET, "compute_at", None),
    (LET, "compute_inline", None),
    (LET, "reverse_compute_at", "scope"),
    (LET, "reverse_compute_inline", "scope"),
    (ALLOCATED, "compute_at", None),
    (ALLOCATED, "compute_inline", None),
    (ALLOCATED, "reverse_compute_at", "scope"),
    (ALLOCATED, "reverse_compute_inline", "scope"),
]


def outcome(module):
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(verify(module), arrays | {"p": np.arange(9, dtype=np.int32), "n": 8})
    return arrays


@pytest.mark.parametrize(("text", "op", "code"), CASES)
def test_a_moved_block_has_its_variables_or_is_refused(program, text, op, code):
    module = program(text)
    before = outcome(module)
    if code is None:
        after = outcome(apply(module, Step(op, STEPS[op])).module)
        for name in before:
            np.testing.assert_array_equal(after[name], before[name])
    else:
        with pytest.raises(ScheduleError) as caught:
            apply(module, Step(op, STEPS[op]))
        assert caught.value.code == f"schedule.{op}.{code}"


INNER_SIZE = """
P[0] = 9
A = T.alloc_buffer((T.int64(P[0]),), "float32")
for i in T.serial(8):
    with T.block("made"):
        vi = T.axis.spatial(8, i)
        A[vi] = V[vi]
for j in T.serial(8):
    with T.block("used"):
        vj = T.axis.spatial(8, j)
        W[vj] = A[vj]
"""


@pytest.mark.parametrize(("op", "block"), [("cache_write", "made"), ("cache_read", "used")])
def test_a_cache_is_as_large_as_the_buffer_whenever_that_is_allocated(program, op, block):
    with pytest.raises(ScheduleError) as caught:
        apply(program(INNER_SIZE), Step(op, {"block": block, "buffer": "A", "scope": "local"}))
    assert caught.value.code == f"schedule.{op}.inner"


INNER_CONDITION = """
for t in T.serial(2):
    A = T.alloc_buffer((8,), "float32")
    for i in T.serial(8):
        with T.block("step"):
            vt, vi = T.axis.remap("SS", [t, i])
            T.where(A[vi] > 0.0)
            W[vi] = X[vt, vi]
"""


@pytest.mark.parametrize("op", ["cache_read", "reindex_cache_read"])
def test_a_condition_on_what_a_nest_allocates_selects_no_copy(program, op):
    text = INNER_CONDITION.replace("    A =", "    if n > 0:\n        W[0] = 1.0\n    A =")
    nested = program("\n".join(["for s in T.serial(2):", *("    " + x for x in text.splitlines())]))
    step = Step(op, {"block": "step", "buffer": "X", "scope": "local"})
    with pytest.raises(ScheduleError) as caught:
        apply(nested, step)
    assert caught.value.code == f"schedule.{op}.domain"


ASKED_BY_INIT = """
Q = T.decl_buffer((8,), "float32")
for a in T.serial(8):
    with T.block("made"):
        va = T.axis.spatial(8, a)
        Q[va] = V[va]
for i in T.serial(8):
    for j in T.serial(n):
        with T.block("used"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(Q[vi] > 0.0)
            with T.init():
                W[vi] = 0.0
            W[vi] = W[vi] + X[vi, vj % 8]
"""


@pytest.mark.parametrize(("loop", "code"), [("i", None), ("j", "other_access")])
def test_a_condition_is_made_before_an_init_that_stands_under_it(program, loop, code):
    module, step = program(ASKED_BY_INIT), Step("compute_at", {"block": "made", "loop": loop})
    if code is not None:
        with pytest.raises(ScheduleError) as caught:
            apply(module, step)
        assert caught.value.code == f"schedule.compute_at.{code}"
        return
    before, after = outcome(module), outcome(apply(module, step).module)
    np.testing.assert_array_equal(after["w"], before["w"])


FROM_LOOP = """
for i in T.serial(8):
    for j in T.serial(n):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                W[vi] = T.float32({loop})
            W[vi] = W[vi] + X[vi, vj % 8] + T.float32(i + j)
"""


@pytest.mark.parametrize("loop", ["i", "j"])
@pytest.mark.parametrize("at", ["i", "j"])
def test_an_init_of_its_own_mentions_no_loop_that_it_runs_without(program, loop, at):
    module = program(FROM_LOOP.format(loop=loop))
    step = Step("decompose_reduction", {"block": "sum", "loop": at})
    if loop == "i":
        before, after = outcome(module), outcome(apply(module, step).module)
        np.testing.assert_array_equal(after["w"], before["w"])
        return
    with pytest.raises(ScheduleError) as caught:
        apply(module, step)
    assert caught.value.code == "schedule.decompose_reduction.dependence"


WIDE = """
Q = T.decl_buffer((16,), "float32")
for a in T.serial(16):
    with T.block("made"):
        va = T.axis.spatial(16, a)
        Q[va] = V[va]
for i in T.serial(4):
    with T.block("used"):
        vi = T.axis.spatial(4, i)
        W[T.ramp(vi * 4, 1, 4)] = Q[T.ramp(vi * 4, 1, 4)]
"""
WIDE_SUM = """
for i in T.serial(4):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[T.ramp(vi * 4, 1, 4)] = V[T.ramp(vi * 4, 1, 4)] + W[T.ramp(vi * 4 + vj, 1, 4)]
"""
USED_WIDE, LOCAL = {"block": "used", "scope": "local"}, {"scope": "local"}
WIDE_CASES = [
    (WIDE, "compute_at", {"block": "made", "loop": "i"}, None),
    (WIDE, "cache_write", {"buffer": "W", **USED_WIDE}, None),
    (WIDE, "cache_read", {"buffer": "Q", **USED_WIDE}, None),
    (WIDE, "compute_inline", {"block": "made"}, "other_access"),
    (WIDE, "reverse_compute_inline", {"block": "used"}, "form"),
    (WIDE, "reindex_cache_write", {"buffer": "W", **USED_WIDE}, "shape"),
    (WIDE, "reindex_cache_read", {"buffer": "Q", **USED_WIDE}, "shape"),
    (WIDE_SUM, "reindex_cache_write", {"block": "sum", "buffer": "V", **LOCAL}, "shape"),
    (WIDE_SUM, "parallel_reduction", {"loop": "j", "parts": 2}, "no_reduction"),
]


@pytest.mark.parametrize(("text", "op", "arguments", "code"), WIDE_CASES)
def test_blocks_of_vectors_stay_blocks_of_vectors(program, text, op, arguments, code):
    module, step = program(text), Step(op, arguments)
    if code is not None:
        with pytest.raises(ScheduleError) as caught:
            apply(module, step)
        assert caught.value.code == f"schedule.{op}.{code}"
        return
    before, after = outcome(module), outcome(apply(module, step).module)
    for name in before:
        np.testing.assert_array_equal(after[name], before[name])
