"""The rule for dense iterations of fused rows: which it takes, the vectors of features, and right results."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from rule_programs import CSR, NARROW, SUM, WIDE, module_of

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import apply
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.dense_rows import dense_rows
from gossamer_schedule.rules.schedule_rule import RuleContext

SIBLING = RuleContext(is_sibling=True)
ROWS = """
    I = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (I, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, K], "SS", "dense") as [i, k]:
        C[i, k] = A[i, k] * 2.0
"""
ONE_VALUE = """
    I = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (I,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I], "S", "dense") as [i]:
        C[i] = A[i] * 2.0
"""


def steps_for(features, target=WIDE):
    report = dense_rows(
        module_of(ROWS, **({} if features is None else {"f": features})),
        replace(SIBLING, machine=target),
    )
    return [(step.op, step.args.get("factors")) for d in report.decisions for step in d.steps]


@pytest.mark.parametrize(
    ("target", "features", "vectors"),
    [(WIDE, 1, 1), (WIDE, 16, 1), (WIDE, 40, 3), (NARROW, 16, 4), (NARROW, 5, 2)],
)
def test_few_features_are_unrolled_vectors(target, features, vectors):
    lanes = 16 if target is WIDE else 4
    steps = steps_for(features, target)
    assert steps == [("split", (vectors, lanes)), ("vectorize", None), ("unroll", None)]


@pytest.mark.parametrize(
    ("target", "features"), [(WIDE, None), (WIDE, 700), (NARROW, 40), (WIDE, 0)]
)
def test_many_features_are_a_loop_over_vectors(target, features):
    lanes = 16 if target is WIDE else 4
    assert steps_for(features, target) == [("split", (None, lanes)), ("vectorize", None)]


def test_one_value_for_each_row_needs_no_step():
    report = dense_rows(module_of(ONE_VALUE), SIBLING)
    assert report.pattern == "a value for each row i"
    assert report.decisions == ()


def test_a_program_of_its_own_is_left_to_other_rules():
    assert dense_rows(module_of(ROWS)) is None
    assert schedule_report(module_of(ROWS), WIDE).rule != "dense_rows"


OTHERS = {
    "stored elements": CSR + SUM,
    "a read of another feature": ROWS.replace("A[i, k] *", "A[i, k // 2] *"),
    "a reduction": ROWS.replace('"SS"', '"SR"').replace("C[i, k] =", "C[i, 0] = C[i, 0] +"),
    "two statements": ROWS + "        C[i, k] = 1.0\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_iterations_are_not_matched(text):
    assert dense_rows(module_of(text), SIBLING) is None


LOOP = """
@T.prim_func
def dense(a: T.handle, c: T.handle, m: T.int64, f: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(a, (m, FEATURES), "float32")
    C_data = T.match_buffer(c, (m, FEATURES), "float32")
    for i in T.serial(m):
        for k in T.serial(FEATURES):
            with T.block("dense"):
                vi, vk = T.axis.remap("SS", [i, k])
                C_data[vi, vk] = A_data[vi, vk] * 2.0
"""


@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("features", [1, 7, 16, 40, None])
def test_the_schedule_computes_each_value(features, target):
    sizes = {} if features is None else {"f": features}
    report = dense_rows(module_of(ROWS, **sizes), replace(SIBLING, machine=target))
    module = parse_module(LOOP.replace("FEATURES", "f" if features is None else str(features)))
    for decision in report.decisions:
        for step in decision.steps:
            module = apply(module, step).module
    for rows in (0, 1, 3):
        a = np.arange(rows * (features or 21), dtype=np.float32).reshape(
            rows, -1 if rows else features or 21
        )
        c = np.full_like(a, 77.0)
        run(verify(module), {"a": a, "c": c, "m": rows, "f": features or 21})
        np.testing.assert_array_equal(c, a * 2)
