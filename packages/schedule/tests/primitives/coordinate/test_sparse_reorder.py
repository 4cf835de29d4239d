"""`sparse_reorder`: results stay the same, and programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import FUSED_ITERATION

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder, apply, replay, sparse_reorder
from gossamer_testkit import examples

NESTED_ITERATION = parse_module("""
@T.prim_func
def shift(x: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "shift") as [i, j]:
        X[i, j] = X[j, i] + 1.0
""")
REFUSED = [
    ("sparse_reorder.order", examples.SPMM_COORDINATE, {"iteration": "csrmm", "order": ("i", "j")}),
    (
        "sparse_reorder.dependence",
        examples.SPMM_COORDINATE,
        {"iteration": "csrmm", "order": ("j", "i", "k")},
    ),
    ("sparse_reorder.not_proved", NESTED_ITERATION, {"iteration": "shift", "order": ("j", "i")}),
    ("sparse_reorder.fused", FUSED_ITERATION, {"iteration": "scale", "order": ("j", "i")}),
]


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED]
)
def test_refusals(code, module, arguments):
    assert reason_of(apply, module, Step("sparse_reorder", arguments)) == code


@pytest.mark.parametrize("order", [("k", "i", "j"), ("i", "k", "j"), ("i", "j", "k")])
def test_sparse_reorder_keeps_the_result(require_spmm, order):
    result = sparse_reorder(examples.SPMM_COORDINATE, "csrmm", order=order)
    assert result.names == order
    assert replay(examples.SPMM_COORDINATE, (result.step,)) == result.module
    require_spmm(result.module, 7)


def test_fused_axes_are_reordered_together(require_spmm):
    builder = ScheduleBuilder(examples.SPMM_COORDINATE).sparse_fuse("csrmm", axes=("I", "J"))
    builder.sparse_reorder("csrmm", order=("k", "i", "j"))
    require_spmm(builder.module, 7)
