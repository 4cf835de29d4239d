"""`sparse_unfuse`: the inverse of `sparse_fuse`, and programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import FUSED_ITERATION

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply, replay, sparse_fuse, sparse_unfuse
from gossamer_testkit import examples

REFUSED = [
    ("sparse_unfuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("J", "I")}),
    ("sparse_unfuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "J")}),
]


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED]
)
def test_refusals(code, module, arguments):
    assert reason_of(apply, module, Step("sparse_unfuse", arguments)) == code


@pytest.mark.parametrize("features", [0, 1, 7])
def test_sparse_unfuse_gives_back_what_was_fused(require_spmm, features):
    fused = sparse_fuse(examples.SPMM_COORDINATE, "csrmm", axes=("I", "J")).module
    result = sparse_unfuse(fused, "csrmm", axes=("I", "J"))
    assert result.names == ("i", "j")
    assert result.module == examples.SPMM_COORDINATE
    assert replay(fused, (result.step,)) == result.module
    built = ScheduleBuilder(fused).sparse_unfuse("csrmm", axes=("I", "J"))
    assert built.trace == (result.step,)
    require_spmm(result.module, features)
