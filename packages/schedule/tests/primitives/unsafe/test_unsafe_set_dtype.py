"""`unsafe_set_dtype`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

ALLOCATED = """
Q = T.alloc_buffer((8,), "float32")
for k in T.serial(8):
    Q[k] = V[k]
"""
SEARCHED = """
Q = T.alloc_buffer((8,), "int32")
for i in T.serial(8):
    Q[i] = P[i]
W[0] = T.float32(T.search("lower", Q, begin=0, end=8, value=3))
"""
REFUSED = [
    ("unsafe_set_dtype.dtype", ALLOCATED, {"buffer": "Q", "dtype": "bool"}),
    ("unsafe_set_dtype.parameter", COPY, {"buffer": "X", "dtype": "float64"}),
    ("unsafe_set_dtype.other_access", SEARCHED, {"buffer": "Q", "dtype": "float64"}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("unsafe_set_dtype", arguments)) == code
