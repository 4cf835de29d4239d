"""`reindex_cache_write`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import ELEMENT, REPEATED, SCATTER, SHARED

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

LET_MIN = """
for i in T.serial(8):
    with T.block("least"):
        vi = T.axis.spatial(8, i)
        t: T.float32 = X[vi, 0]
        V[vi] = T.min(V[vi], t)
"""
LOCAL = {"scope": "local"}
REFUSED = [
    ("reindex_cache_write.race", SHARED, {"block": "copy", "buffer": "Y", **LOCAL}),
    ("reindex_cache_write.initialized", REPEATED, {"block": "sum", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.initialized", LET_MIN, {"block": "least", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.not_proved", SCATTER, {"block": "scatter", "buffer": "V", **LOCAL}),
    (
        "reindex_cache_write.order",
        COPY,
        {"block": "copy", "buffer": "Y", "order": ("vi", "vj", "vk"), **LOCAL},
    ),
    ("reindex_cache_write.element", ELEMENT, {"block": "last", "buffer": "Y", **LOCAL}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("reindex_cache_write", arguments)) == code
