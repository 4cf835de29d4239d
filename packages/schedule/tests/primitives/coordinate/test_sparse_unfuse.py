"""`sparse_unfuse`: programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import FUSED_ITERATION

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply
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
