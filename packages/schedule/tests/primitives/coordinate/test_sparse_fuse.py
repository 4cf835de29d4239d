"""`sparse_fuse`: results stay the same, and programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import FUSED_ITERATION

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply, replay, sparse_fuse
from gossamer_testkit import examples

REFUSED = [
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I",)}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "K")}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "I")}),
    ("sparse_fuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("I", "J")}),
    ("sparse_fuse.chain", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "K")}),
]


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED]
)
def test_refusals(code, module, arguments):
    assert reason_of(apply, module, Step("sparse_fuse", arguments)) == code


@pytest.mark.parametrize("features", [0, 1, 7])
def test_sparse_fuse_keeps_the_result(require_spmm, features):
    result = sparse_fuse(examples.SPMM_COORDINATE, "csrmm", axes=("I", "J"))
    assert result.names == ("i", "j")
    assert replay(examples.SPMM_COORDINATE, (result.step,)) == result.module
    assert ScheduleBuilder(examples.SPMM_COORDINATE).sparse_fuse(
        "csrmm", axes=("I", "J")
    ).trace == (result.step,)
    require_spmm(result.module, features)
