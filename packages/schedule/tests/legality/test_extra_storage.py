"""With `extra_storage`, an index beyond the end of a row names an element of the next row; primitives do
not assume that rows are disjoint.
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

NEXT_IN_ROWS = """
@T.prim_func
def next_in_rows(y: T.handle, indptr: T.handle, n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (nnz, nnz), indptr)
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    Q = T.sp.alloc_buffer((I, J), "int32", extra_storage=1)
    Y = T.sp.match_buffer(y, (I, J), "int32")
    for a in T.serial(n):
        for b in T.serial(T.int64(J_indptr[a + 1]) - T.int64(J_indptr[a])):
            with T.block("made"):
                va, vb = T.axis.remap("SS", [a, b])
                Q[va, vb + 1] = T.int32(va * 10 + vb)
                Q[va, vb] = T.int32(va * 10 + vb)
    for i in T.serial(n):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("used"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = Q[vi, vj + 1]
"""
BESIDE = NEXT_IN_ROWS.replace(
    "                Q[va, vb + 1] = T.int32(va * 10 + vb)\n", ""
).replace("Q[vi, vj + 1]", "T.if_then_else(T.int64(J_indptr[vi]) + vj < nnz - 1, Q[vi, vj + 1], 0)")


def values(module):
    y = np.zeros(6, np.int32)
    indptr = np.array([0, 2, 2, 5, 6], np.int32)
    run(verify(module), {"y": y, "indptr": indptr, "n": 4, "nnz": 6})
    return y.tolist()


@pytest.mark.parametrize("loop", ["i", "j"])
def test_what_the_next_row_makes_is_made_in_an_iteration_that_reads_it(loop):
    module = parse_module(BESIDE)
    step = Step("compute_at", {"block": "made", "loop": loop})
    assert values(apply(module, step).module) == values(module) == [1, 20, 21, 22, 30, 0]


@pytest.mark.parametrize("text", [BESIDE, NEXT_IN_ROWS], ids=["read", "written"])
@pytest.mark.parametrize("loop", ["a", "b"])
def test_what_the_next_row_makes_is_not_read_before(text, loop):
    with pytest.raises(ScheduleError) as caught:
        apply(parse_module(text), Step("reverse_compute_at", {"block": "used", "loop": loop}))
    assert caught.value.code == "schedule.reverse_compute_at.not_proved"


@pytest.mark.parametrize(
    ("op", "arguments"),
    [("parallel", {"loop": "a"}), ("bind", {"loop": "a", "thread": "blockIdx.x"})],
)
def test_rows_that_share_an_element_are_not_written_at_once(op, arguments):
    with pytest.raises(ScheduleError, match="elements of 'Q'") as caught:
        apply(parse_module(NEXT_IN_ROWS), Step(op, arguments))
    assert caught.value.code == f"schedule.{op}.not_proved"
