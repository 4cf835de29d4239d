"""`reindex_cache_read`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import SHARED, TRIANGLE

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

STENCIL = """
for i in T.serial(8):
    with T.block("stencil"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[vi] + W[vi + 1]
"""
TRIANGLE_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(vi + 1, j)",
)
LOCAL = {"scope": "local"}
REFUSED = [
    ("reindex_cache_read.race", SHARED, {"block": "copy", "buffer": "V", **LOCAL}),
    ("reindex_cache_read.single", STENCIL, {"block": "stencil", "buffer": "W", **LOCAL}),
    ("reindex_cache_read.order", COPY, {"block": "copy", "buffer": "X", "order": ("vi",), **LOCAL}),
    ("reindex_cache_read.shape", TRIANGLE_DOMAIN, {"block": "lower", "buffer": "X", **LOCAL}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reindex_cache_read", arguments)) == code
