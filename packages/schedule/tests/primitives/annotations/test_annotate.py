"""`annotate` and `unannotate` in turn, and programs that `annotate` refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from program_results import loop_named
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

REFUSED = [
    ("annotate.reserved", COPY, {"name": "i", "key": "reassociates", "value": True}),
    ("annotate.refused", COPY, {"name": "i", "key": "horizontal_fuse", "value": True}),
    ("annotate.no_name", COPY, {"name": "nowhere", "key": "a", "value": 1}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("annotate", arguments)) == code


def test_annotations_come_and_go():
    builder = ScheduleBuilder(examples.SPMM).annotate("csrmm", key="origin", value="paper")
    builder.annotate("i", key="unroll", value=4).annotate("i", key="unroll", value=2)
    assert loop_named(builder.module, "i").annotations == (("unroll", 2),)
    builder.unannotate("csrmm", key="origin").unannotate("i", key="unroll")
    assert builder.module == examples.SPMM


def test_annotations_of_iterations_reach_their_block(require_spmm):
    builder = ScheduleBuilder(examples.SPMM_COORDINATE).annotate("csrmm", key="a", value=True)
    require_spmm(builder.module, 3)
