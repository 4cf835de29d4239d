"""`add_unit_loop`: results stay the same, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples

REFUSED = [
    ("add_unit_loop.no_name", COPY, {"name": "nowhere"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("add_unit_loop", arguments)) == code


@pytest.mark.parametrize("name", ["i", "j", "k", "csrmm"])
def test_a_unit_loop_changes_nothing(spmm, require_spmm, name):
    builder = ScheduleBuilder(spmm()).add_unit_loop(name)
    assert builder.names == (f"{name}_unit",)
    require_spmm(builder.module, 3)
    (unit,) = builder.names
    require_spmm(builder.unroll(unit).add_unit_loop(unit).module, 3)


def test_a_block_is_computed_at_a_unit_loop():
    builder = ScheduleBuilder(examples.STAGED).add_unit_loop("scale")
    module = builder.compute_at("fetch", loop="scale_unit").module
    x, y = np.arange(24, dtype=np.float32).reshape(3, 8), np.zeros((3, 8), np.float32)
    run(verify(module), {"x": x, "y": y, "m": 3})
    np.testing.assert_array_equal(y, x * 2)
