"""`rolling_buffer`: programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of
from refused_programs import OUTSIDE, WINDOW

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

MADE = {"block": "made", "buffer": "Q"}
BY_TWO = WINDOW.replace(
    '        with T.block("made")', '        V[60] = 1.0\n        with T.block("made")'
)
SIZED = WINDOW.replace('(10,), "float32"', '(10 + i,), "float32"')
WRITTEN_TWICE = WINDOW.replace(
    '    with T.block("used")', '    Q[i] = 1.0\n    with T.block("used")'
)
ADDED = WINDOW.replace("= W[vj]", "= Q[vj] + W[vj]")
OVERWRITTEN = WINDOW.replace("V[vi] =", "W[vi] =")
STARTED = WINDOW.replace("T.serial(8)", "T.serial(T.int64(P[0]), 8)").replace(
    "V[vi] = Q", "P[0] = 0\n        V[vi] = Q"
)
BY_ITERATION = WINDOW.replace("= W[vj]", "= W[vj] + T.float32(i)")
APART = WINDOW.replace("i + j)", "i * 3 + j)").replace("10", "24").replace("vi + 2", "vi * 3")
EARLIER = WINDOW.replace("    for j in", "    V[i] = Q[i]\n    for j in")
BEYOND = WINDOW.replace("Q[vi + 2]", "Q[vi + 3]")
BY_FIRST = """
for i in T.serial(8):
    Q = T.alloc_buffer((10,), "float32")
    for j in T.serial(3):
        for k in T.serial(3):
            with T.block("made"):
                vj = T.axis.spatial(10, i + j)
                vk = T.axis.spatial(3, k)
                with T.init():
                    Q[vj] = W[vk]
                Q[vj] = Q[vj] + W[vj]
    with T.block("used"):
        vi = T.axis.spatial(8, i)
        V[vi] = Q[vi] + Q[vi + 2]
"""
REFUSED = [
    ("rolling_buffer.scope", OUTSIDE, MADE),
    ("rolling_buffer.scope", BY_TWO, MADE),
    ("rolling_buffer.scope", SIZED, MADE),
    ("rolling_buffer.writers", WRITTEN_TWICE, MADE),
    ("rolling_buffer.updates", ADDED, MADE),
    ("rolling_buffer.changed", OVERWRITTEN, MADE),
    ("rolling_buffer.changed", STARTED, MADE),
    ("rolling_buffer.window", BY_ITERATION, MADE),
    ("rolling_buffer.overlap", APART, MADE),
    ("rolling_buffer.other_access", EARLIER, MADE),
    ("rolling_buffer.not_proved", BEYOND, MADE),
    ("rolling_buffer.not_proved", BY_FIRST, MADE),
    ("rolling_buffer.kind", WINDOW.replace("i in T.serial", "i in T.unroll"), MADE),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("rolling_buffer", arguments)) == code
