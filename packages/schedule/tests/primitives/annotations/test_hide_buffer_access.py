"""`hide_buffer_access`: the regions that remain, and programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block
from gossamer_ir.traversal.walk import collect
from gossamer_schedule import ScheduleBuilder, apply

BEYOND_ALL = """
R = T.decl_buffer((8,), "float32")
for i in T.serial(8):
    with T.block("beyond"):
        vi = T.axis.spatial(8, i)
        if vi < 3:
            R[9] = 1.0
"""
REFUSED = [
    ("hide_buffer_access.access", COPY, {"block": "copy", "access": "search", "buffers": ("X",)}),
    ("hide_buffer_access.region", COPY, {"block": "copy", "access": "write", "buffers": ("X",)}),
    (
        "hide_buffer_access.region",
        BEYOND_ALL,
        {"block": "beyond", "access": "write", "buffers": ()},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("hide_buffer_access", arguments)) == code


def test_regions_of_the_other_kind_of_access_stay(program):
    def regions(builder):
        (block,) = collect(Block, *builder.module.functions[0].body)
        return block.reads, block.writes

    builder = ScheduleBuilder(program(COPY))
    assert regions(builder) == (None, None)
    builder.hide_buffer_access("copy", access="read", buffers=("X",))
    assert regions(builder) == ((), None)
    builder.hide_buffer_access("copy", access="write", buffers=())
    reads, (written,) = regions(builder)
    assert (reads, written.buffer) == ((), "Y")
    builder.hide_buffer_access("copy", access="write", buffers=("Y",))
    assert regions(builder) == ((), ())
