"""`parallel`: which iterations are proved independent, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import FETCH, SCATTER

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder, apply

SCALED = SCATTER.replace("V[T.int64(P[vi])]", "V[vi * n]")
CHANGING = SCATTER.replace(
    "V[T.int64(P[vi])] = W[vi]", "V[vi + T.int64(P[0])] = W[vi]\n        P[vi] = 1"
)
REFUSED = [
    ("parallel.kind", COPY.replace("for j in T.serial", "for j in T.unroll"), {"loop": "j"}),
    ("parallel.accumulate", COPY, {"loop": "i", "accumulate": "privatized"}),
    ("parallel.race", SUM, {"loop": "j"}),
    ("parallel.not_proved", SCATTER, {"loop": "i"}),
    ("parallel.not_proved", SCALED, {"loop": "i"}),
    ("parallel.not_proved", CHANGING, {"loop": "i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "8 - i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "n * i"}),
    ("parallel.weight", COPY, {"loop": "i", "weight": "T.int64(P[i])"}),
    ("parallel.text", COPY, {"loop": "i", "weight": "i +"}),
    (
        "parallel.not_proved",
        "T.assume(monotone(P))" + COPY,
        {"loop": "i", "weight": "T.int64(P[i + 1])"},
    ),
    ("parallel.text", COPY, {"loop": "i", "weight": "T.int64(P[0, i])"}),
    ("parallel.grain", COPY, {"loop": "i", "grain": 0}),
    (
        "parallel.pipelined",
        FETCH.replace("T.serial(8)", "T.serial(8, annotations={'pipeline': 2})", 1),
        {"loop": "i"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("parallel", arguments)) == code


COLUMNS = """
@T.prim_func
def columns(p: T.handle, q: T.handle, a: T.handle, v: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (p, q))
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    V = T.sp.match_buffer(v, (N,), "float32")
    J_indptr = T.sp.match_buffer(p, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(q, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("add"):
                vi, vj = T.axis.remap("RS", [i, j])
                V[T.int64(J_indices[vi, vj])] = V[T.int64(J_indices[vi, vj])] + A[vi, vj]
"""


def test_coordinates_of_a_fiber_differ_at_the_position_stage_too():
    assert ScheduleBuilder(parse_module(COLUMNS)).parallel("j").names == ("j",)


@pytest.mark.parametrize(
    "changed",
    [("(p, q))", "(p, q), unique=False)"), ("(p, q))", "(p, q), sorted=False)"),
     ("(p, q))", "(p, q), padded=True)"), (" - T.int64(J_indptr[i])", "")],
)  # fmt: skip
def test_coordinates_that_may_be_equal(changed):
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(parse_module(COLUMNS.replace(*changed))).parallel("j")
    assert caught.value.code == "schedule.parallel.not_proved"
