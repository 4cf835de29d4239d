"""`unannotate`: marks that stay, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

REFUSED = [
    ("unannotate.no_key", COPY, {"name": "i", "key": "a"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unannotate", arguments)) == code


def test_the_mark_of_a_sum_in_another_order_stays(spmm):
    builder = ScheduleBuilder(spmm()).reorder("j", "k")
    reordered = (
        ScheduleBuilder(examples.ROW_SUM).split("j", factors=(None, 4)).reorder("j_1", "j_0")
    )
    assert ("reassociates", True) not in marks_of(builder.module)
    assert ("reassociates", True) in marks_of(reordered.module)
    with pytest.raises(ScheduleError) as caught:
        reordered.unannotate("row_sum", key="reassociates")
    assert caught.value.code == "schedule.unannotate.needed"


def marks_of(module):
    return {
        mark
        for node in walk(module.functions[0])
        if isinstance(node, Block)
        for mark in node.annotations
    }
