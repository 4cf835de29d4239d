"""Primitives that change the order of iterations: shared elements are combined by one reducer, and bounds
that are evaluated again do not change.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import apply

COORDINATE = """
@T.prim_func
def program(x: T.handle, y: T.handle, z: T.handle, m: T.handle, p: T.handle,
            indptr: T.handle, indices: T.handle):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(4)
    J = T.sp.dense_fixed(4)
    K = T.sp.dense_fixed(8)
    D = T.sp.compressed_varied(I, (4, 6), (indptr, indices), unique=False)
    F = T.sp.dense_fixed(4)
    X = T.sp.match_buffer(x, (I, J), "int32")
    Y = T.sp.match_buffer(y, (K,), "int32")
    Z = T.sp.match_buffer(z, (K,), "int32")
    P = T.sp.match_buffer(p, (K,), "int64")
    M = T.sp.match_buffer(m, (I, J, F), "int32")
    least = T.comm_reducer(
        lambda a, b, c, d: (T.min(a, c), T.Select(a < c or (a == c and b < d), b, d)),
        (T.max_value("int32"), T.int32(0)))
    with T.sp.iteration([{axes}], "{kinds}", "step") as [i, j]:
"""
BODIES = {
    "an element that is scaled before each sum": "Y[i + j] = Y[i + j] * 2 + X[i, j]",
    "an element that is subtracted": "Y[i + j] = X[i, j] - Y[i + j]",
    "a condition on the element": "if Y[i + j] < 3:\n    Y[i + j] = Y[i + j] + X[i, j]",
    "the last one to be assigned through an index array": "Y[P[i] + P[j]] = X[i, j]",
    "the last one to be assigned": "Y[i + j] = X[i, j]",
    "two buffers of a minimum with elements of their own": (
        "Y[i + j], Z[j] = least(Y[i + j], Z[j], X[i, j], T.int32(1))"
    ),
    "a let in between": "old: T.int32 = Y[i + j]\nY[i + j] = old * 2 + X[i, j]",
    "another buffer that reads the sum": "Y[i + j] = Y[i + j] + X[i, j]\nZ[i + j] = Z[i + j] + Y[i + j]",
    "two reducers": "Y[i + j] = Y[i + j] + X[i, j]\nY[i + j] = Y[i + j] * X[i, j]",
}
LEGAL = {
    "a sum": "Y[i + j] = Y[i + j] + X[i, j]",
    "a difference": "Y[i + j] = Y[i + j] - X[i, j]",
    "a sum under a condition": "if X[i, j] < 3:\n    Y[i + j] = Y[i + j] + X[i, j]",
    "a sum of a let": "new: T.int32 = X[i, j] * 3\nY[i + j] = Y[i + j] + new",
    "two sums": "Y[i + j] = Y[i + j] + X[i, j]\nZ[j] = Z[j] + X[i, j] * 2",
    "a minimum and where it is": "Y[i + j], Z[i + j] = least(Y[i + j], Z[i + j], X[i, j], T.int32(i))",
    "an element for each point": "Y[i * 2 + j % 2] = Y[i * 2 + j % 2] + X[i, j]",
}


def indented(body, depth):
    return "".join(f"{'    ' * depth}{line}\n" for line in body.strip("\n").splitlines())


def coordinate(body, *, axes="I, J", kinds="SS"):
    head = COORDINATE.replace("{axes}", axes).replace("{kinds}", kinds)
    return verify(parse_module(head + indented(body, 2)))


def results(module, arrays):
    made = {name: np.array(array) for name, array in arrays.items()}
    run(module, made, chunks=2)
    return made


def coordinate_arrays():
    random = np.random.default_rng(3)
    return {
        "x": random.integers(-3, 4, (4, 4)).astype(np.int32),
        "y": random.integers(-3, 4, 8).astype(np.int32),
        "z": random.integers(-3, 4, 8).astype(np.int32),
        "m": np.zeros((4, 4, 4), np.int32),
        "p": random.integers(0, 4, 8),
        "indptr": np.array([0, 2, 2, 3, 6], np.int32),
        "indices": np.array([1, 1, 2, 0, 3, 3], np.int32),
    }


TURNED = Step("sparse_reorder", {"iteration": "step", "order": ("j", "i")})


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_points_that_depend_on_each_other_stay_in_order(body):
    with pytest.raises(ScheduleError, match=r"\[schedule.sparse_reorder.not_proved\]"):
        apply(coordinate(body), TURNED)


@pytest.mark.parametrize("body", LEGAL.values(), ids=LEGAL)
def test_points_that_only_accumulate_change_places(body):
    module = coordinate(body)
    before = results(module, coordinate_arrays())
    after = results(verify(apply(module, TURNED).module), coordinate_arrays())
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


@pytest.mark.parametrize("axis", ["J", "D"])
def test_coordinates_that_stand_twice_in_a_fiber_select_no_element(axis):
    """Several slots of `D` may hold one coordinate; those of `J` differ."""
    head = COORDINATE.replace("{axes}", f"I, {axis}, F").replace("{kinds}", "SSS")
    body = "M[i, j, f // 2] = M[i, j, f // 2] * 2 + X[i, f]"
    module = verify(parse_module(head.replace("[i, j]:", "[i, j, f]:") + indented(body, 2)))
    step = Step("sparse_reorder", {"iteration": "step", "order": ("i", "f", "j")})
    if axis == "J":
        assert apply(module, step).module
    else:
        with pytest.raises(ScheduleError, match=r"\[schedule.sparse_reorder.not_proved\]"):
            apply(module, step)


LOOPS = """
@T.prim_func
def program(v: T.handle, w: T.handle, p: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    V = T.match_buffer(v, (64,), "int32")
    W = T.match_buffer(w, (64,), "int32")
    P = T.match_buffer(p, (9,), "int64")
"""


def loops(body):
    return verify(parse_module(LOOPS + indented(body, 1)))


CHANGED = """
for i in T.serial(P[0]):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        P[0] = 0
        V[vi] = V[vi] + 1
"""
LIFTED = """
with T.block("outer"):
    for i in T.serial(P[0]):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            P[0] = 0
            V[vi] = V[vi] + 1
"""
NESTED = """
for i in T.serial(P[0]):
    for j in T.serial(2):
        with T.block("b"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(2, j)
            P[0] = 0
            V[vi * 2 + vj] = V[vi * 2 + vj] + 1
"""
DOMAIN = """
for i in T.serial(5):
    with T.block("b"):
        vi = T.axis.spatial(P[0], i)
        P[1] = P[1] + 1
        P[0] = P[0] + 1
"""
AGAIN = {
    "split": (CHANGED, Step("split", {"loop": "i", "factors": (None, 4)})),
    "split of a domain": (DOMAIN, Step("split", {"loop": "i", "factors": (None, 4)})),
    "align": (CHANGED, Step("align", {"loop": "i", "buffer": "V", "lanes": 4})),
    "lift_loop": (LIFTED, Step("lift_loop", {"loop": "i"})),
    "fuse": (NESTED, Step("fuse", {"loops": ("i", "j")})),
    "reorder": (NESTED, Step("reorder", {"loops": ("j", "i")})),
    "blockize": (NESTED, Step("blockize", {"loop": "j"})),
}


@pytest.mark.parametrize(("body", "step"), AGAIN.values(), ids=AGAIN)
def test_an_extent_that_the_loop_changes_is_not_evaluated_again(body, step):
    with pytest.raises(ScheduleError, match=rf"\[schedule.{step.op}.not_proved\]"):
        apply(loops(body), step)


PREFIXES = """
for i in T.serial(8):
    with T.block("first"):
        vi = T.axis.reduce(8, i)
        V[0] = V[0] + W[vi]
    with T.block("second"):
        ui = T.axis.reduce(8, i)
        {second}
"""
DEPENDENT = {
    "a sum of prefixes": "W[9] = W[9] + V[0]",
    "another reducer of the same element": "V[0] = V[0] * W[ui]",
    "a condition on the sum": "T.where(V[0] > 0)\n        W[9] = W[9] + 1",
}
IN_LANES = {
    "vectorize": Step("vectorize", {"loop": "i"}),
    "bind": Step("bind", {"loop": "i", "thread": "threadIdx.x"}),
}


@pytest.mark.parametrize("step", IN_LANES.values(), ids=IN_LANES)
@pytest.mark.parametrize("second", DEPENDENT.values(), ids=DEPENDENT)
def test_lanes_do_not_add_up_what_others_need_in_between(second, step):
    with pytest.raises(ScheduleError, match=rf"\[schedule.{step.op}.not_reducer\]"):
        apply(loops(PREFIXES.replace("{second}", second)), step)


@pytest.mark.parametrize("step", IN_LANES.values(), ids=IN_LANES)
def test_lanes_add_up_two_sums_of_one_element(step):
    module = loops(PREFIXES.replace("{second}", "V[0] = V[0] + W[ui + 8]"))
    made = verify(apply(module, step).module)
    arrays = {"v": np.zeros(64, np.int32), "w": np.arange(64, dtype=np.int32), "p": np.arange(9)}
    assert results(made, arrays)["v"][0] == sum(range(16))


BOUND_BY_SUM = """
for i in T.serial(8):
    for j in T.serial(P[0]):
        with T.block("b"):
            vi = T.axis.reduce(8, i)
            vj = T.axis.reduce(1000, j)
            P[0] = P[0] + 1
"""


@pytest.mark.parametrize(
    "step",
    [
        Step("parallel", {"loop": "i", "accumulate": "atomic"}),
        Step("parallel_reduction", {"loop": "i"}),
    ],
)
def test_a_sum_that_bounds_a_loop_is_not_shared(step):
    with pytest.raises(ScheduleError, match=rf"\[schedule.{step.op}.no_reduction\]"):
        apply(loops(BOUND_BY_SUM), step)


OWN = """
L = T.alloc_buffer((8,), "int32", scope="local")
for i in T.serial(8):
    with T.block("made"):
        vi = T.axis.spatial(8, i)
        L[vi] = W[vi]
for j in T.serial(8):
    with T.block("used"):
        vj = T.axis.spatial(8, j)
        V[vj] = L[vj]
"""


@pytest.mark.parametrize(
    "step",
    [Step("parallel", {"loop": "i"}), Step("bind", {"loop": "j", "thread": "blockIdx.x"})],
    ids=["parallel", "bind"],
)
def test_threads_do_not_store_to_others_what_is_their_own(step):
    with pytest.raises(ScheduleError, match=rf"\[schedule.{step.op}.threads\]"):
        apply(loops(OWN), step)
    assert apply(loops(OWN.replace("local", "global")), step).module
