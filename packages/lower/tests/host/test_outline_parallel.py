"""`outline_parallel`: parallel loops become functions of a range, called for chunks that cover it."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import VerifyError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import For, ParallelFor
from gossamer_ir.script import parse_module, print_expr
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_to_flat

PROGRAM = """
@T.prim_func
def program(x: T.handle, y: T.handle, p: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (nnz,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(monotone(P))
    {before}
    for i in T.parallel({range}):
        Y[i] = {start}
        for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
            Y[i] = Y[i] + X[T.int64(P[i]) + j]
"""
CASES = {
    "plain": {"range": "m"},
    "with a grain": {"range": "m, grain=64"},
    "with a weight": {"range": "m, weight=T.int64(P[i]) + 4 * i, grain=64"},
    "from one on": {"range": "1, m"},
    "used values are passed": {
        "range": "m",
        "before": "scale = m + 1",
        "start": "T.float32(scale)",
    },
}


def lowered(range, before="pass", start="0.0"):
    text = PROGRAM.format(range=range, before=before, start=start)
    return lower_to_flat(parse_module(text.replace("    pass\n", "")))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_loop_is_outlined_and_computes_the_same(case):
    module = lowered(**case)
    assert diagnostics(module) == ()
    entry, worker = sorted(module.functions, key=lambda function: function.name != module.entry)
    (call,) = (node for node in walk(entry) if isinstance(node, ParallelFor))
    assert call.function == worker.name
    assert all(node.kind == "serial" for node in walk(module) if isinstance(node, For))
    indptr = np.array([0, 2, 2, 5, 6], dtype=np.int32)
    values = np.arange(1, 7, dtype=np.float32)
    first = 1 if case["range"].startswith("1") else 0
    offset = 5.0 if "start" in case else 0.0
    result = np.full(4, -7, dtype=np.float32)
    run(module, {"x": values, "y": result, "p": indptr, "m": 4, "nnz": 6})
    expected = np.array([3, 0, 12, 6], dtype=np.float32) + offset
    expected[:first] = -7
    np.testing.assert_array_equal(result, expected)


def test_a_pointer_without_a_buffer_is_an_error_of_the_program():
    module = parse_module("""
@T.prim_func
def program(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] * 2.0
""")
    with pytest.raises(VerifyError, match="No buffer is bound to the pointer parameter 'y'"):
        lower_to_flat(module, verify_each=True)


def test_weight_and_grain_are_kept():
    call = next(
        node for node in walk(lowered(**CASES["with a weight"])) if isinstance(node, ParallelFor)
    )
    assert print_expr(call.grain) == "64"
    assert "P[i]" in print_expr(call.weight)


def test_a_fact_that_names_offsets_which_the_worker_does_not_use_is_left_out():
    module = parse_module("""
@T.prim_func
def program(y: T.handle, p: T.handle, q: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (nnz,), "int32")
    P = T.match_buffer(p, (m + 1,), "int32")
    Q = T.match_buffer(q, (nnz,), "int32")
    T.assume(in_range(Q, 0, 9))
    T.assume(sorted_segments(Q, P, unique=True))
    for i in T.parallel(nnz):
        Y[i] = Q[i]
""")
    flat = lower_to_flat(module)
    assert diagnostics(flat) == ()
    assert [len(function.facts) for function in flat.functions] == [2, 1]
