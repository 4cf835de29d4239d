"""`unsafe_match_to_alloc`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import EPILOGUE

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply, set_block_filter
from gossamer_testkit import examples

FILTERED = set_block_filter(examples.SCALE, "group_0").module
REFUSED = [
    ("unsafe_match_to_alloc.allocated", EPILOGUE, {"block": "sum", "buffer": "Q"}),
    ("unsafe_match_to_alloc.stores", COPY, {"block": "copy", "buffer": "X"}),
]
REFUSED_MODULES = [
    ("unsafe_match_to_alloc.filter", FILTERED, {"block": "scale", "buffer": "Y"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unsafe_match_to_alloc", arguments)) == code


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED_MODULES, ids=[code for code, *_ in REFUSED_MODULES]
)
def test_refusals_of_modules(code, module, arguments):
    assert reason_of(apply, module, Step("unsafe_match_to_alloc", arguments)) == code
