"""`cache_write`: programs before and after, old values, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import COPY, RAGGED, SUM
from refused import reason_of
from refused_programs import ELEMENT, REPEATED, SCATTER, TRIANGLE, TWO_COPIES

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply

SOMETIMES = """
for i in T.serial(8):
    with T.block("some"):
        vi = T.axis.spatial(8, i)
        if vi < 4:
            V[vi * 16] = W[vi]
"""
HALF = COPY.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(64, i * 2)\n            vj = T.axis.spatial(8, j)",
)
ODD = COPY.replace("Y[vi, vj] =", "T.where(i + j < 9)\n            Y[vi, vj] =")
LOCAL_COPY = COPY.replace("Y[vi, vj] =", "Y[vi, vj] = Y[vi, vj + 1] *")
SEVERAL_STORES = SCATTER.replace("V[T.int64(P[vi])] = W[vi]", "V[vi] = W[vi]\n        V[vi] = 1.0")
OUTER_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(i + 1, j)",
)
IDLE = "for t in T.serial(n):" + COPY.replace("\n", "\n    ")
LOCAL = {"scope": "local"}
NOINIT = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = V[vi] + X[vi, vj]
"""
COND = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vj < 5)
            Y[vi, vj] = X[vi, vj]
"""
BEFORE_AND_AFTER = {
    "a copy of a ragged output": (
        RAGGED, {"block": "scale", "buffer": "V", "scope": "local"},
        ("V_local", "scale_V_local", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            V_local[T.int64(P[vi]) + vj] = 2.0 * W[T.int64(P[vi]) + vj]
for i_c in T.serial(8):
    for j_c in T.serial(T.int64(P[i_c + 1]) - T.int64(P[i_c])):
        with T.block("scale_V_local"):
            vi_c, vj_c = T.axis.remap("SS", [i_c, j_c])
            V[T.int64(P[vi_c]) + vj_c] = V_local[T.int64(P[vi_c]) + vj_c]
""",
    ),
    "a reduction without init loads the old value": (
        NOINIT, {"block": "sum", "buffer": "V", "scope": "local"}, ("V_local", "sum_V_local", "i_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V_local[vi] = V[vi]
            V_local[vi] = V_local[vi] + X[vi, vj]
for i_c in T.serial(8):
    with T.block("sum_V_local"):
        vi_c = T.axis.spatial(8, i_c)
        V[vi_c] = V_local[vi_c]
""",
    ),
    "conditions of the element are kept": (
        COND, {"block": "copy", "buffer": "Y", "scope": "shared"},
        ("Y_shared", "copy_Y_shared", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vj < 5)
            Y_shared[vi, vj] = X[vi, vj]
for i_c in T.serial(8):
    for j_c in T.serial(8):
        with T.block("copy_Y_shared"):
            vi_c, vj_c = T.axis.remap("SS", [i_c, j_c])
            T.where(vj_c < 5)
            Y[vi_c, vj_c] = Y_shared[vi_c, vj_c]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("cache_write.not_proved", IDLE, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.scope", SUM, {"block": "sum", "buffer": "V", "scope": "l1"}),
    ("cache_write.no_buffer", SUM, {"block": "sum", "buffer": "Q", **LOCAL}),
    ("cache_write.stores", SUM, {"block": "sum", "buffer": "X", **LOCAL}),
    ("cache_write.stores", SEVERAL_STORES, {"block": "scatter", "buffer": "V", **LOCAL}),
    ("cache_write.reads", LOCAL_COPY, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.element", ELEMENT, {"block": "last", "buffer": "Y", **LOCAL}),
    ("cache_write.element", REPEATED, {"block": "sum", "buffer": "V", **LOCAL}),
    ("cache_write.not_proved", HALF, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.not_proved", SOMETIMES, {"block": "some", "buffer": "V", **LOCAL}),
    ("cache_write.predicate", ODD, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.domain", OUTER_DOMAIN, {"block": "lower", "buffer": "Y", **LOCAL}),
    ("cache_write.other_access", TWO_COPIES, {"block": "first", "buffer": "Y", **LOCAL}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("cache_write", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("cache_write", arguments)) == code


def test_iterators_of_one_loop_visit_no_product_of_domains(program):
    diagonal = """
for i in T.serial(8):
    with T.block("diagonal"):
        vi, vj = T.axis.remap("SS", [i, i])
        Y[vi, vj] = X[vi, vj]
"""
    with pytest.raises(Exception, match="whatever the other iterators are"):
        ScheduleBuilder(program(diagonal)).cache_write("diagonal", buffer="Y", scope="local")


def test_loops_of_a_copy_have_names_where_an_iterator_is_a_number(program):
    module = program(SUM.replace("vi", "v4"))
    result = apply(module, Step("cache_write", {"block": "sum", "buffer": "V", "scope": "local"}))
    verify(result.module)
    assert result.names[-1].isidentifier()


GOING_ON = {
    "a sum": "V[vi] = V[vi] + X[vi, vj]",
    "a difference": "V[vi] = V[vi] - X[vi, vj]",
    "a recurrence": "V[vi] = V[vi] * 0.5 + X[vi, vj]",
    "the last": "V[vi] = X[vi, vj]",
    "those that are positive": "if X[vi, vj] > 0.0:\n                V[vi] = V[vi] + X[vi, vj]",
    "by a let": "t: T.float32 = X[vi, vj]\n            V[vi] = T.min(V[vi], t)",
}


@pytest.mark.parametrize("body", GOING_ON.values(), ids=GOING_ON)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_cache_of_accumulated_elements_loads_their_old_values(body, n):
    text = f"""
@T.prim_func
def f(x: T.handle, v: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (m, n), "float32")
    V = T.match_buffer(v, (m,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                {body.replace("            ", "                ")}
"""
    before = parse_module(text)
    builder = ScheduleBuilder(before).cache_write("sum", buffer="V", scope="local")
    builder.reverse_compute_at("sum_V_local", loop="i").decompose_reduction("sum", loop="j")
    outputs = []
    for module in (before, verify(builder.module)):
        x = np.random.default_rng(2).integers(-8, 9, (4, n)).astype(np.float32)
        v = np.float32([3, -1, 7, 0])
        run(module, {"x": x, "v": v, "m": 4, "n": n})
        outputs.append(v)
    np.testing.assert_array_equal(*outputs)
