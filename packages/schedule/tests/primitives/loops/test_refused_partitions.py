"""Every error code of the primitives that partition, distribute and specialize loops, decompose padding and
change dtypes, with a smallest program that raises it.
"""

from __future__ import annotations

import pytest
from nest_programs import BACKWARDS, COPY, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

TWO_COPIES = (
    COPY
    + """
    for k in T.serial(8):
        with T.block("second"):
            wi, wk = T.axis.remap("SS", [i, k])
            Z[wi, wk] = Y[wi, wk]
"""
)
MEETING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                V[vi + vj] = 0.0
            V[vi + vj] = V[vi + vj] + X[vi, vj]
"""
OTHER = """
for h in T.serial(8):
    with T.block("other"):
        vh = T.axis.spatial(8, h)
        V[vh] = 0.0
"""
ALLOCATED = """
Q = T.alloc_buffer((8,), "float32")
for k in T.serial(8):
    Q[k] = V[k]
"""
PADDING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.if_then_else(vj > 0, X[vi, vj - 1], 0.0)
"""
PADDING_AND_SHRINKING = PADDING.replace("j in T.serial(8)", "j in T.serial(T.int64(P[0]))").replace(
    "    for j", "    P[0] = P[0] - 1\n    for j"
)
CHAINED = """
for i in T.serial(7):
    with T.block("first"):
        vi = T.axis.spatial(7, i)
        V[vi] = W[vi]
    with T.block("second"):
        wi = T.axis.spatial(7, i)
        W[wi + 1] = V[wi + 1] * 2.0
"""
SHRINKING = """
for i in T.serial(T.int64(P[0])):
    for j in T.serial(2):
        with T.block("last"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vj] = P[vj] - 1
    V[i] = 0.0
"""
NAMED = """
for i in T.serial(8):
    t: T.float32 = V[i]
    V[i] = 0.0
    W[i] = t
"""
SUMMED_AFTER = """
for j in T.serial(8):
    with T.block("first"):
        vj = T.axis.spatial(8, j)
        W[vj] = V[vj + 8]
    with T.block("sum"):
        uj = T.axis.reduce(8, j)
        with T.init():
            V[8] = 0.0
        V[8] = V[8] + X[0, uj]
"""
SEARCHED = """
Q = T.alloc_buffer((8,), "int32")
for i in T.serial(8):
    Q[i] = P[i]
W[0] = T.float32(T.search("lower", Q, begin=0, end=8, value=3))
"""
CASES = [
    ("add_unit_loop.no_name", COPY, "add_unit_loop", {"name": "nowhere"}),
    ("loop_partition.points", COPY, "loop_partition", {"loop": "i", "points": ()}),
    ("loop_partition.points", COPY, "loop_partition", {"loop": "i", "points": (-1,)}),
    ("loop_partition.points", COPY, "loop_partition", {"loop": "i", "points": (2**63,)}),
    ("loop_partition.points", COPY, "loop_partition", {"loop": "i", "points": (4, "n", 2)}),
    ("loop_partition.points", COPY, "loop_partition", {"loop": "i", "points": ("X[0, 0]",)}),
    ("loop_partition.text", COPY, "loop_partition", {"loop": "i", "points": ("j",)}),
    ("loop_partition.not_proved", COPY, "loop_partition",
     {"loop": "i", "points": ("T.int64(P[n])",)}),
    ("loop_partition.not_proved", SHRINKING, "loop_partition", {"loop": "i", "points": (1,)}),
    ("loop_partition.not_proved", BACKWARDS, "loop_partition", {"loop": "i", "points": (1,)}),
    ("loop_partition.not_proved", BACKWARDS, "loop_partition", {"loop": "j", "points": ("i",)}),
    ("fission.parts", COPY, "fission", {"loop": "i"}),
    ("fission.parts", TWO_COPIES, "fission", {"loop": "i", "after": "k"}),
    ("fission.scope", NAMED, "fission", {"loop": "i"}),
    ("fission.dependence", CHAINED, "fission", {"loop": "i"}),
    ("fission.not_proved", CHAINED.replace("wi + 1", "T.int64(P[wi])"), "fission", {"loop": "i"}),
    ("fission.not_proved", SUMMED_AFTER, "fission", {"loop": "j"}),
    ("fission.not_proved", SHRINKING, "fission", {"loop": "i"}),
    ("specialize.condition", COPY, "specialize", {"name": "i", "condition": "n + 1"}),
    ("specialize.text", COPY, "specialize", {"name": "i", "condition": "j == 1"}),
    ("specialize.not_proved", COPY, "specialize", {"name": "i", "condition": "P[n] == 1"}),
    ("specialize.not_proved", MEETING, "specialize", {"name": "j", "condition": "i == 1"}),
    ("specialize.init", SUM, "specialize", {"name": "sum", "condition": "j == 0"}),
    ("specialize.no_name", COPY, "specialize", {"name": "nowhere", "condition": "n == 1"}),
    ("decompose_padding.pattern", COPY, "decompose_padding", {"block": "copy", "loop": "i"}),
    ("decompose_padding.not_enclosing", PADDING + OTHER,
     "decompose_padding", {"block": "pad", "loop": "h"}),
    ("decompose_padding.other_access", PADDING.replace("X[vi", "Y[vi"), "decompose_padding",
     {"block": "pad", "loop": "i"}),
    ("decompose_padding.not_proved", PADDING.replace("Y[vi, vj]", "V[vi + vj]"),
     "decompose_padding", {"block": "pad", "loop": "i"}),
    ("decompose_padding.not_proved", PADDING_AND_SHRINKING, "decompose_padding",
     {"block": "pad", "loop": "i"}),
    ("unsafe_set_dtype.dtype", ALLOCATED, "unsafe_set_dtype", {"buffer": "Q", "dtype": "bool"}),
    ("unsafe_set_dtype.parameter", COPY, "unsafe_set_dtype", {"buffer": "X", "dtype": "float64"}),
    ("unsafe_set_dtype.other_access", SEARCHED, "unsafe_set_dtype",
     {"buffer": "Q", "dtype": "float64"}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "body", "op", "arguments"), CASES)
def test_refusals(program, code, body, op, arguments):
    assert reason_of(apply, program(body), Step(op, arguments)) == code
