"""The rule for updates of rows of features, whose rows may repeat."""

from __future__ import annotations

import pytest

from gossamer_ir.script import parse_module
from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.scatter_spmm import scatter_spmm

TARGET = Machine()
PROGRAM = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle, r: T.handle, q: T.handle,
      m: T.int64, n: T.int64, s: T.int64, f: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(64)
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_fixed(O, (m, s), r, "int32", unique=False, padded=False)
    J = T.sp.compressed_fixed(I, (n, 8), q, "int32")
    A = T.sp.match_buffer(a, (O, I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (M, K), "float32")
    with T.sp.iteration([O, I, J, K], "SSRS", "sums") as [o, i, j, k]:
        C[i, k] = C[i, k] + A[o, i, j] * B[j, k]
"""
COLUMNS = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle,
      m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    M = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(64)
    J = T.sp.dense_fixed(n)
    I = T.sp.compressed_varied(J, (m, nnz), (p, q), "int32")
    A = T.sp.match_buffer(a, (J, I), "float32")
    B = T.sp.match_buffer(b, (J, K), "float32")
    C = T.sp.match_buffer(c, (M, K), "float32")
    with T.sp.iteration([J, I, K], "RSS", "sums") as [j, i, k]:
        if A[j, i] > 0.0:
            C[i, k] = C[i, k] + A[j, i] * B[j, k]
"""


def report(text, **features):
    return schedule_report(parse_module(text), TARGET)


def steps(rule_report, op):
    return [step.args for step in rule_report.schedule.loop if step.op == op]


def test_rows_that_may_not_exist_are_not_cached():
    """Nothing is stored to a row without slots, so it need not exist, but a cache would load it."""
    rule_report = report(PROGRAM.replace("(m, s), r", "(n, s), r"))
    assert steps(rule_report, "reindex_cache_write") == []


@pytest.mark.parametrize("features", ["64", "7", "100", "512", "f"])
def test_rows_that_are_cut_are_summed_in_registers(features):
    rule_report = report(PROGRAM.replace("dense_fixed(64)", f"dense_fixed({features})"))
    assert rule_report.rule == "scatter_spmm"
    assert [args["block"] for args in steps(rule_report, "reindex_cache_write")] == ["sums"]
    expected = [] if features == "7" else ["k_0"]
    assert [args["loop"] for args in steps(rule_report, "parallel")] == expected


def test_columns_are_updated_in_memory():
    rule_report = report(COLUMNS)
    assert rule_report.rule == "scatter_spmm"
    assert steps(rule_report, "reindex_cache_write") == []
    assert steps(rule_report, "reorder") == [{"loops": ("k_0", "j", "i", "k_1", "k_2")}]


OTHERS = {
    "an init": PROGRAM.replace(
        "        C[i, k] =", "        with T.init():\n            C[i, k] = 0.0\n        C[i, k] ="
    ),
    "one feature": PROGRAM.replace("dense_fixed(64)", "dense_fixed(1)"),
    "a row of another feature": PROGRAM.replace("B[j, k]", "B[k, j]"),
    "an assignment": COLUMNS.replace("C[i, k] + ", ""),
    "a shifted feature": COLUMNS.replace("B[j, k]", "B[j, k + 1]"),
    "a condition on features": COLUMNS.replace("if A[j, i] > 0.0", "if k > 3"),
    "a condition on the output": COLUMNS.replace("if A[j, i] > 0.0", "if C[i, 0] > 0.0"),
    "two statements": COLUMNS + "            C[i, k] = C[i, k] + 1.0\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_are_not_matched(name):
    assert scatter_spmm(parse_module(OTHERS[name])) is None
