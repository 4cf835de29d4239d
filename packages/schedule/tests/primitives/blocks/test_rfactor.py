"""`rfactor`: reductions in two stages start from the identity and lose no terms."""

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import BROKEN_NEST, LAST_WINS, REPEATED, SKEWED_SUM, TWO_COPIES

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply, rfactor
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

SPMM_STEPS = (
    ("split", ("j",), {"factors": (None, 3)}),
    ("split", ("k",), {"factors": (None, 4)}),
    ("reorder", ("i", "k_0", "j_0", "j_1", "k_1"), {}),
    ("rfactor", ("j_1",), {"axis": 1}),
    ("reverse_compute_at", ("csrmm",), {"loop": "k_0"}),
    ("reorder", ("j_0", "j_1", "k_1"), {}),
    ("vectorize", ("k_1",), {}),
    ("parallel", ("i",), {}),
)
SPMV_STEPS = (
    ("split", ("j",), {"factors": (None, 2, 4)}),
    ("rfactor", ("j_2",), {"axis": 1}),
    ("rfactor", ("j_1",), {}),
    ("reverse_compute_at", ("csrmv_rf",), {"loop": "i"}),
    ("reverse_compute_at", ("csrmv",), {"loop": "i"}),
    ("vectorize", ("j_2",), {}),
    ("parallel", ("i",), {}),
)


@pytest.mark.parametrize("features", [0, 1, 4, 9])
@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
def test_spmm_keeps_its_result(require_spmm_after_each_step, module, features):
    require_spmm_after_each_step(module, SPMM_STEPS, features)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_parts_of_parts_keep_the_result_of_spmv_after_each_step(require_spmv, rows):
    builder = ScheduleBuilder(examples.SPMV)
    for op, names, options in SPMV_STEPS:
        getattr(builder, op)(*names, **options)
        require_spmv(builder.module, rows=rows)


LEAST = """
for i in T.serial(8):
    for j_0 in T.serial(3):
        for j_1 in T.serial(5):
            with T.block("least"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.reduce(8, j_0 * 5 + j_1)
                T.where({condition})
                {init}
                V[vi] = T.min(V[vi], X[vi, vj])
"""
INIT = "with T.init():\n                    V[vi] = W[vi]"


@pytest.mark.parametrize("loop", ["j_0", "j_1"])
@pytest.mark.parametrize("init", [INIT, ""])
@pytest.mark.parametrize(
    "condition",
    ["vj < 8", "vj < 8 and j_1 < 3", "vj < 8 and j_0 < 1", "vj < 8 and vi % 2 == 0 and j_0 != 1"],
)
def test_parts_that_nothing_is_combined_in_hold_the_identity(program, loop, init, condition):
    module = program(LEAST.format(condition=condition, init=init))
    changed = verify(ScheduleBuilder(module).rfactor(loop).module)
    np.testing.assert_array_equal(outcome(changed), outcome(module))


def test_all_of_a_reduction_in_parts(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("product"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(vj < vi)
            with T.init():
                V[vi] = 3.0
            V[vi] = V[vi] * X[vi, vj]
""")
    changed = ScheduleBuilder(module).rfactor("j").module
    assert "T.if_then_else(vj < vi" in body_text(changed)
    np.testing.assert_array_equal(outcome(verify(changed)), outcome(module))


def outcome(module):
    """V after a run, which leaves the other arrays unchanged."""
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(module, arrays | {"p": np.zeros(9, np.int32), "n": 8})
    return arrays["v"]


ARGMAX = """
@T.prim_func
def argmax_rows(p: T.handle, a: T.handle, c: T.handle, v: T.handle, m: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (m + 1,), "int32")
    A = T.match_buffer(a, (nnz,), "float32")
    C = T.match_buffer(c, (m,), "int64")
    V = T.match_buffer(v, (m,), "float32")
    T.assume(monotone(P))
    T.assume(in_range(P, 0, nnz + 1))
    argmax = T.comm_reducer(
        lambda c0, v0, c1, v1: (T.Select(v0 > v1 or (v0 == v1 and c0 < c1), c0, c1), T.max(v0, v1)),
        (T.max_value("int64"), T.float32("-inf")))
    for i in T.serial(m):
        for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
            with T.block("rows"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = 1000
                    V[vi] = -1000.0
                C[vi], V[vi] = argmax(C[vi], V[vi], vj, A[T.int64(P[vi]) + vj])
"""


def test_declared_reducers_and_rows_of_all_lengths():
    module = parse_module(ARGMAX)
    lengths = [0, 3, 1, 0, 9, 4, 0]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = (np.arange(indptr[-1]) * 7 % 5).astype(np.float32)
    rows = np.split(values, indptr[1:-1])
    expected = [np.argmax(row) if row.size else 1000 for row in rows]
    builder = ScheduleBuilder(module).split("j", factors=(None, 4)).rfactor("j_1")
    for version in (module, builder.module, builder.reverse_compute_at("rows", loop="i").module):
        columns, maxima = np.zeros(7, np.int64), np.zeros(7, np.float32)
        arguments = {
            "p": indptr,
            "a": values,
            "c": columns,
            "v": maxima,
            "m": 7,
            "nnz": len(values),
        }
        run(verify(version), arguments)
        np.testing.assert_array_equal(columns, expected)
        np.testing.assert_array_equal(maxima, [max(row, default=-1000) for row in rows])


def test_an_init_of_another_buffer_stays_with_the_terms_that_read_it(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                W[vi] = 1.0
            V[vi] = V[vi] + X[vi, vj] * W[vi]
""")
    with pytest.raises(ScheduleError, match=r"\[schedule.rfactor.init\]"):
        rfactor(module, "j")


RAGGED_SUM = SUM.replace("for j in T.serial(8)", "for j in T.serial(T.int64(P[i]))")
SUM_TWICE = SUM + "    W[i] = V[i]\n"
BEFORE_AND_AFTER = {
    "a reduction in parts": (
        SUM, {"loop": "j", "axis": 1}, ("V_rf", "sum_rf", "sum", "i_c", "j_c"),
        """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum_rf"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"reassociates": True})
            with T.init():
                V_rf[vi, vj] = 0.0
            V_rf[vi, vj] = V_rf[vi, vj] + X[vi, vj]
for i_c in T.serial(8):
    for j_c in T.serial(8):
        with T.block("sum"):
            vi_c, vj_c = T.axis.remap("SR", [i_c, j_c])
            T.block_attr({"reassociates": True})
            with T.init():
                V[vi_c] = 0.0
            V[vi_c] = V[vi_c] + V_rf[vi_c, vj_c]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("rfactor.body", TWO_COPIES, {"loop": "i"}),
    ("rfactor.kind", SUM.replace("for j in T.serial", "for j in T.parallel"), {"loop": "j"}),
    ("rfactor.spatial", SUM, {"loop": "i"}),
    ("rfactor.spatial", COPY, {"loop": "j"}),
    ("rfactor.mixed", SKEWED_SUM, {"loop": "j"}),
    ("rfactor.mixed", BROKEN_NEST.replace("if i", "while i"), {"loop": "j"}),
    ("rfactor.extent", RAGGED_SUM, {"loop": "j"}),
    ("rfactor.extent", SUM.replace("j in T.serial(8)", "j in T.serial(2, 6)"), {"loop": "j"}),
    ("rfactor.not_reducer", LAST_WINS, {"loop": "j"}),
    ("rfactor.axis", SUM, {"loop": "j", "axis": 2}),
    ("rfactor.init", SUM.replace("V[vi] = 0.0", "V[vi] = X[vi, vj]"), {"loop": "j"}),
    ("rfactor.reads", SUM.replace("V[vi] = 0.0", "V[vi] = V[0]"), {"loop": "j"}),
    ("rfactor.element", SUM.replace("V[vi]", "V[vj]"), {"loop": "j"}),
    ("rfactor.not_proved", SUM.replace("V[vi]", "V[T.int64(P[vi])]"), {"loop": "j"}),
    ("rfactor.not_proved", REPEATED, {"loop": "j"}),
    ("rfactor.other_access", SUM_TWICE, {"loop": "j"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("rfactor", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("rfactor", arguments)) == code
