"""`sparse_reorder`: programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import FUSED_ITERATION

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_schedule import apply
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
