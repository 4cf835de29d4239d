"""The rule for a value for each stored element: which loop runs over the elements, and correct results."""

from __future__ import annotations

import numpy as np
import pytest
from rule_programs import CSR, NARROW, SUM, TARGET, WIDE, module_of, rows_of, scaled

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import replay
from gossamer_schedule.rules import default_schedule
from gossamer_schedule.rules.library.elementwise import elementwise
from gossamer_schedule.rules.schedule_rule import RowThresholds, RuleContext

ELEMENTWISE = [
    (scaled("csr", "A[i, j] * 2.0"), "i_j_0"),
    (scaled("csr", "C[i, j] * 2.0"), "i_j_0"),
    (scaled("csr", "A[i, j] * X[j]"), "i_j_0"),
    (scaled("ragged", "A[i, j]"), "i_j_0"),
    (scaled("csr", "A[i, j] * R[i]"), "i"),
    (scaled("csr", "T.Select(i == j, A[i, j], 0.0)"), "i"),
    (scaled("ragged", "A[i, j] * X[j]"), "i"),
    (scaled("ell", "A[i, j]"), "i"),
    (scaled("affine", "A[i, j]"), "i"),
]


@pytest.mark.parametrize(("body", "loop"), ELEMENTWISE)
def test_elements_are_numbered_through_where_no_row_is_asked_for(body, loop):
    schedule = default_schedule(module_of(body), TARGET)
    fused = [step.args["axes"] for step in schedule.coordinate]
    assert fused == ([] if loop == "i" else [("I", "J")])
    assert [step.op for step in schedule.loop] == ["split", "vectorize", "parallel"]
    assert schedule.loop[-1].args["loop"] == loop


def test_short_rows_are_gone_through_one_element_at_a_time():
    body = scaled("csr", "A[i, j] * R[i]")
    trace = default_schedule(module_of(body), TARGET, rows_of(2, longest=3)).loop
    assert [step.op for step in trace] == ["parallel"]


def test_elements_of_a_sibling_have_a_loop_over_rows():
    module = module_of(scaled("csr", "A[i, j] * 2.0"))
    report = elementwise(module, RuleContext(is_sibling=True))
    assert [decision.stage for decision in report.decisions] == ["loop", "loop"]
    assert report.decisions[-1].steps[0].args["loop"] == "i"


@pytest.mark.parametrize(
    ("mean", "longest", "what"),
    [(3, 30, "one element at a time"), (5, 30, "vectors of 16 elements")],
)
def test_vectors_pay_for_a_sibling_above_its_short_row(mean, longest, what):
    context = RuleContext(
        rows_of(mean, longest), is_sibling=True, thresholds=RowThresholds(short_row=4.0)
    )
    report = elementwise(module_of(scaled("csr", "A[i, j] * 2.0")), context)
    assert report.decisions[0].what == what


def test_a_reduction_is_not_matched():
    assert elementwise(module_of(CSR + SUM)) is None


PARAMETERS = """
@T.prim_func
def scaled(a: T.handle, r: T.handle, c: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
           nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(a, (nnz,), "float32")
    R_data = T.match_buffer(r, (m,), "float32")
    C_data = T.match_buffer(c, (nnz,), "float32")
    J_indptr = T.match_buffer(p, (m + 1,), "int32")
    J_indices = T.match_buffer(q, (nnz,), "int32")
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(monotone(J_indptr))
"""
BY_ROWS = f"""{PARAMETERS}
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_data[T.int64(J_indptr[vi]) + vj] = A_data[T.int64(J_indptr[vi]) + vj] * R_data[vi]
"""
THROUGH = f"""{PARAMETERS}
    for i_j in T.serial(nnz):
        with T.block("scaled"):
            vj = T.axis.spatial(nnz, i_j)
            C_data[vj] = A_data[vj] * 2.0
"""


@pytest.mark.parametrize("stats", [None, rows_of(2, 3), rows_of(20)])
@pytest.mark.parametrize("target", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    ("value", "text"), [("A[i, j] * R[i]", BY_ROWS), ("A[i, j] * 2.0", THROUGH)]
)
def test_the_schedule_computes_each_element(value, text, target, stats):
    """The rows are numbered from the end, so that a value of another row would differ."""
    schedule = default_schedule(module_of(scaled("csr", value)), target, stats)
    scheduled = verify(replay(parse_module(text), schedule.loop))
    for lengths in ([], [0], [0, 3, 0, 21, 1, 16, 0]):
        offsets = np.cumsum([0, *lengths], dtype=np.int32)
        a = np.arange(offsets[-1], dtype=np.float32) - 5
        rows = np.arange(len(lengths), 0, -1).astype(np.float32)
        result = np.full(a.size, 77.0, np.float32)
        arrays = {"a": a, "r": rows, "c": result, "p": offsets, "q": np.zeros(a.size, np.int32)}
        run(scheduled, arrays | {"m": rows.size, "n": 1, "nnz": a.size})
        factors = np.repeat(rows, lengths) if text is BY_ROWS else np.float32(2)
        np.testing.assert_array_equal(result, a * factors)
