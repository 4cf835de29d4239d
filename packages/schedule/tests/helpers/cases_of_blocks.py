"""Programs that primitives on blocks must reject, with the error codes."""

from __future__ import annotations

from nest_programs import BACKWARDS, COPY, SUM
from refused_programs import BEHIND, LANES, LAST_WINS, REPEATED, REPEATED_INIT, STAGED, TWO_COPIES

SELECTED_AROUND = """
for t in T.serial(8):
    with T.block("around"):
        vt = T.axis.spatial(8, t)
        for i in T.serial(8):
            with T.block("made"):
                vi = T.axis.spatial(8, i)
                W[vi] = X[vi, 0]
        for j in T.serial(8):
            with T.block("used"):
                ut = T.axis.spatial(8, vt)
                uj = T.axis.reduce(8, j)
                V[ut] = V[ut] + W[ut] * X[uj, ut]
"""
READS_OF_OTHERS = SUM.replace("= V[vi] +", "= V[1] +")
LET_ABOVE = SUM.replace("        with T.block", "        t: T.int64 = j * 2\n        with T.block")
PARTIAL = BEHIND.replace("for i in T.serial(8)", "for i in T.serial(4)")
BUSY = BEHIND.replace(
    "for h in",
    """with T.block("between"):
    Y[0, 0] = 1.0
for h in""",
)
MANY = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
for h in T.serial(8):
    with T.block("copy"):
        vh = T.axis.spatial(8, h)
        W[vh] = V[vh]
"""
RECURRENCE = BEHIND.replace("= Y[wh, wk]", "= Y[wh, wk] + Z[wh, 0]")
AHEAD = STAGED.replace("X[vi, vj]", "Z[vi // 2, vj]")
FROM_INIT = STAGED.replace('SS", [h, k]', 'SR", [h, k]').replace(
    "        Z[wh, wk] = Q[wh, wk]",
    """        with T.init():
                V[wh] = Q[wh, 0]
            V[wh] = V[wh] + 1.0""",
)
ALLOCATED_SUM = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    with T.block("inner"):
        vi = T.axis.spatial(8, i)
        with T.init():
            R[vi] = 0.0
        R[vi] = R[vi] + X[vi, 0]
"""
STAGED_SUM = STAGED.replace('SS", [i, j]', 'SR", [i, j]').replace(
    "            Q[vi, vj] = X[vi, vj]",
    """            with T.init():
                Q[vi, 0] = 0.0
            Q[vi, 0] = Q[vi, 0] + X[vi, vj]""",
)
STAGED_HALF = STAGED.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(64, i * 2)\n            vj = T.axis.spatial(8, j)",
)
FIVE_ROWS = """
Q = T.decl_buffer((8, 8), "float32")
for i in T.serial(5):
    for j in T.serial(8):
        with T.block("first"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, j)
            Q[vi, vj] = X[vi, vj]
for h in T.serial(5):
    for k in T.serial(8):
        with T.block("second"):
            wh = T.axis.spatial(8, h)
            wk = T.axis.spatial(8, k)
            Z[wh, wk] = Q[wh, wk]
"""
USED_BEFORE = STAGED.replace("for i in", "for t in T.serial(8):\n    V[t] = Q[t, 0]\nfor i in")
PREFETCHED = STAGED + "T.prefetch(Q[0, 0])\n"
SKEWED_SUM = SUM.replace(
    'vi, vj = T.axis.remap("SR", [i, j])',
    "vi = T.axis.spatial(8, 7 - i)\n            vj = T.axis.reduce(15, i + j)",
)
WIDE = BACKWARDS.replace(
    'vi, vj = T.axis.remap("RS", [i, j])',
    "vi = T.axis.reduce(8, i)\n            vj = T.axis.spatial(8, j)",
)
BROKEN_NEST = """
for i in T.serial(8):
    for k in T.serial(2):
        if i < 7:
            for j in T.serial(4):
                with T.block("sum"):
                    vi, vk, vj = T.axis.remap("SRR", [i, k, j])
                    with T.init():
                        V[vi] = 0.0
                    V[vi] = V[vi] + X[vi, vk * 4 + vj]
"""
RAGGED_SUM = SUM.replace("for j in T.serial(8)", "for j in T.serial(T.int64(P[i]))")
SUM_TWICE = SUM + "    W[i] = V[i]\n"
CASES = [
    ("compute_at.updates", STAGED.replace("= X[vi, vj]", "= Q[vi, vj] + X[vi, vj]"), "compute_at",
     {"block": "first", "loop": "h"}),
    ("compute_at.parameter", BEHIND, "compute_at", {"block": "first", "loop": "h"}),
    ("compute_at.kind", STAGED.replace("for h in T.serial", "for h in T.parallel"), "compute_at",
     {"block": "first", "loop": "h"}),
    ("compute_at.binding", STAGED.replace("[i, j]", "[i, i]"), "compute_at",
     {"block": "first", "loop": "h"}),
    ("compute_at.scope", STAGED, "compute_at", {"block": "first", "loop": "j"}),
    ("compute_at.other_access", STAGED + LAST_WINS.replace("= X[", "= Q["), "compute_at",
     {"block": "first", "loop": "h"}),
    ("compute_at.other_access", STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="), "compute_at",
     {"block": "first", "loop": "h"}),
    ("compute_at.other_access", FROM_INIT, "compute_at", {"block": "first", "loop": "h"}),
    ("compute_inline.form", STAGED_SUM, "compute_inline", {"block": "first"}),
    ("compute_inline.parameter", BEHIND, "compute_inline", {"block": "first"}),
    ("compute_inline.writers", STAGED + COPY.replace("Y[", "Q["), "compute_inline",
     {"block": "first"}),
    ("compute_inline.predicate", STAGED.replace("Q[vi, vj] =", "T.where(i + j < 9)\n            Q[vi, vj] ="),
     "compute_inline", {"block": "first"}),
    ("compute_inline.changed", STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="), "compute_inline",
     {"block": "first"}),
    ("compute_inline.other_access", PREFETCHED, "compute_inline", {"block": "first"}),
    ("compute_inline.other_access", USED_BEFORE, "compute_inline", {"block": "first"}),
    ("compute_inline.not_proved", STAGED_HALF, "compute_inline", {"block": "first"}),
    ("compute_inline.not_proved", STAGED.replace("Q[vi, vj]", "Q[vi // 2, vj]"), "compute_inline",
     {"block": "first"}),
    ("reverse_compute_inline.form", STAGED_SUM, "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.element", BEHIND, "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.element", STAGED.replace("= Q[wh, wk]", "= Q[wh, wh]"),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.writers",
     STAGED.replace("Q[vi, vj] =", "Q[0, vj] = 0.0\n            Q[vi, vj] ="),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.predicate",
     STAGED.replace("Z[wh, wk] =", "T.where(h + k < 9)\n            Z[wh, wk] ="),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.scope", STAGED + "    Y[h, 0] = 1.0\n", "reverse_compute_inline",
     {"block": "second"}),
    ("reverse_compute_inline.other_access", STAGED + LAST_WINS.replace("= X[", "= Q["),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.other_access", STAGED.replace("Z[wh, wk] =", "X[wh, wk] ="),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.not_proved", STAGED.replace("Z[wh, wk] =", "Z[wh, wk // 2] ="),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.not_proved", STAGED_HALF.replace("[h, k]", "[h, h]"),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_inline.kind",
     LANES.replace("[h, k])", "[h, k])\n            T.where(wk < wh)"),
     "reverse_compute_inline", {"block": "second"}),
    ("reverse_compute_at.reduction", SUM.replace("V[vi]", "V[vi // 2]"), "reverse_compute_at",
     {"block": "sum", "loop": "i"}),
    ("reverse_compute_at.reduction", RECURRENCE, "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("reverse_compute_at.kind", BEHIND.replace("for i in T.serial", "for i in T.parallel"),
     "reverse_compute_at", {"block": "second", "loop": "i"}),
    ("reverse_compute_at.binding", BEHIND.replace("[h, k]", "[h, h]"), "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("reverse_compute_at.scope", BEHIND, "reverse_compute_at", {"block": "first", "loop": "h"}),
    ("reverse_compute_at.other_access", BUSY, "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("reverse_compute_at.other_access", AHEAD, "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("reverse_compute_at.no_producer", BEHIND.replace("= Y[", "= X["), "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("reverse_compute_at.not_proved", MANY, "reverse_compute_at", {"block": "copy", "loop": "j"}),
    ("reverse_compute_at.not_proved", PARTIAL, "reverse_compute_at",
     {"block": "second", "loop": "i"}),
    ("decompose_reduction.no_init", COPY, "decompose_reduction", {"block": "copy", "loop": "i"}),
    ("decompose_reduction.not_enclosing", MANY, "decompose_reduction",
     {"block": "sum", "loop": "h"}),
    ("decompose_reduction.too_deep", BACKWARDS, "decompose_reduction",
     {"block": "sum", "loop": "j"}),
    ("decompose_reduction.dependence", LET_ABOVE, "decompose_reduction",
     {"block": "sum", "loop": "i"}),
    ("decompose_reduction.not_proved", REPEATED_INIT, "decompose_reduction",
     {"block": "sum", "loop": "t"}),
    ("decompose_reduction.not_proved", READS_OF_OTHERS, "decompose_reduction",
     {"block": "sum", "loop": "i"}),
    ("blockize.body", TWO_COPIES, "blockize", {"loop": "i"}),
    ("blockize.dependence", BROKEN_NEST.replace("SRR", "RRR"), "blockize", {"loop": "j"}),
    ("blockize.mixed", SKEWED_SUM, "blockize", {"loop": "j"}),
    ("blockize.dependence", BACKWARDS, "blockize", {"loop": "j"}),
    ("blockize.dependence", WIDE, "blockize", {"loop": "j"}),
    ("rfactor.body", TWO_COPIES, "rfactor", {"loop": "i"}),
    ("rfactor.kind", SUM.replace("for j in T.serial", "for j in T.parallel"), "rfactor", {"loop": "j"}),
    ("rfactor.spatial", SUM, "rfactor", {"loop": "i"}),
    ("rfactor.spatial", COPY, "rfactor", {"loop": "j"}),
    ("rfactor.mixed", SKEWED_SUM, "rfactor", {"loop": "j"}),
    ("rfactor.mixed", BROKEN_NEST.replace("if i", "while i"), "rfactor", {"loop": "j"}),
    ("rfactor.extent", RAGGED_SUM, "rfactor", {"loop": "j"}),
    ("rfactor.extent", SUM.replace("j in T.serial(8)", "j in T.serial(2, 6)"), "rfactor",
     {"loop": "j"}),
    ("rfactor.not_reducer", LAST_WINS, "rfactor", {"loop": "j"}),
    ("rfactor.axis", SUM, "rfactor", {"loop": "j", "axis": 2}),
    ("rfactor.init", SUM.replace("V[vi] = 0.0", "V[vi] = X[vi, vj]"), "rfactor", {"loop": "j"}),
    ("rfactor.reads", SUM.replace("V[vi] = 0.0", "V[vi] = V[0]"), "rfactor", {"loop": "j"}),
    ("rfactor.element", SUM.replace("V[vi]", "V[vj]"), "rfactor", {"loop": "j"}),
    ("rfactor.not_proved", SUM.replace("V[vi]", "V[T.int64(P[vi])]"), "rfactor", {"loop": "j"}),
    ("rfactor.not_proved", REPEATED, "rfactor", {"loop": "j"}),
    ("rfactor.other_access", SUM_TWICE, "rfactor", {"loop": "j"}),
    ("decompose_reduction.inner", ALLOCATED_SUM, "decompose_reduction",
     {"block": "inner", "loop": "i"}),
    ("reverse_compute_at.not_proved", SELECTED_AROUND, "reverse_compute_at",
     {"block": "used", "loop": "i"}),
    ("compute_inline.form", COPY.replace("Y[vi, vj] = X[vi, vj]", "pass"), "compute_inline",
     {"block": "copy"}),
    ("reverse_compute_at.binding", FIVE_ROWS, "reverse_compute_at", {"block": "second", "loop": "i"}),
    ("compute_at.binding", FIVE_ROWS, "compute_at", {"block": "first", "loop": "h"}),
]  # fmt: skip
