"""Every error code of the primitives, with a smallest program that raises it."""

from __future__ import annotations

import ast
import fnmatch
import re
from pathlib import Path

import cases_of_caches
import pytest
from nest_programs import BACKWARDS, COPY, SUM

import gossamer_schedule
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_schedule import (
    PRIMITIVES,
    apply,
    cache_read,
    get_blocks,
    get_iterations,
    get_loops,
    replay,
)
from gossamer_testkit import examples

TWO_COPIES = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
    for k in T.serial(8):
        with T.block("second"):
            wi, wk = T.axis.remap("SS", [i, k])
            Z[wi, wk] = Y[wi, wk]
"""
BEHIND = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
for h in T.serial(8):
    for k in T.serial(8):
        with T.block("second"):
            wh, wk = T.axis.remap("SS", [h, k])
            Z[wh, wk] = Y[wh, wk]
"""
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
SCATTER = """
for i in T.serial(8):
    with T.block("scatter"):
        vi = T.axis.spatial(8, i)
        V[T.int64(P[vi])] = W[vi]
"""
ONE_ELEMENT = SCATTER.replace("V[T.int64(P[vi])]", "V[0]")
LANES_MEET = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
LAST_WINS = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("last"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = X[vi, vj]
"""
SOMETIMES = """
for i in T.serial(8):
    with T.block("some"):
        vi = T.axis.spatial(8, i)
        if vi < 4:
            V[vi * 16] = W[vi]
"""
SATURATING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(V[vi] < 5.0)
            V[vi] = V[vi] + X[vi, vj]
"""
LET_MIN = """
for i in T.serial(8):
    with T.block("least"):
        vi = T.axis.spatial(8, i)
        t: T.float32 = X[vi, 0]
        V[vi] = T.min(V[vi], t)
"""
SKEWED = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("skewed"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi + vj] = V[vi + vj + 1] + 1.0
"""
TRIANGLE = """
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("lower"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
LATE = COPY.replace("T.serial(8):\n    for", "T.serial(2, 8):\n    for")
SYMBOLIC = COPY.replace("T.serial(8):\n    for", "T.serial(n):\n    for")
PARALLEL = COPY.replace("for i in T.serial", "for i in T.parallel")
HALF = COPY.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(64, i * 2)\n            vj = T.axis.spatial(8, j)",
)
ODD = COPY.replace("Y[vi, vj] =", "T.where(i + j < 9)\n            Y[vi, vj] =")
NO_INIT = SUM.replace("            with T.init():\n                V[vi] = 0.0\n", "")
REPEATED = "for t in T.serial(3):" + NO_INIT.replace("\n", "\n    ")
VECTOR = """
Q = T.alloc_buffer((16,), "float32")
Q[T.ramp(4, 1, 4)] = V[T.ramp(0, 1, 4)]
W[T.ramp(0, 1, 4)] = Q[T.ramp(4, 1, 4)]
"""
REPEATED_INIT = "for t in T.serial(3):" + SUM.replace("\n", "\n    ")
READS_OF_OTHERS = SUM.replace("= V[vi] +", "= V[1] +")
LET_ABOVE = SUM.replace("        with T.block", "        t: T.int64 = j * 2\n        with T.block")
LOCAL_COPY = COPY.replace("Y[vi, vj] =", "Y[vi, vj] = Y[vi, vj + 1] *")
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
SEVERAL_STORES = SCATTER.replace("V[T.int64(P[vi])] = W[vi]", "V[vi] = W[vi]\n        V[vi] = 1.0")
ELEMENT = LAST_WINS.replace("V[vi] =", "Y[vi, vj] =")
OUTER_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(i + 1, j)",
)

SCALED = SCATTER.replace("V[T.int64(P[vi])]", "V[vi * n]")
CHANGING = SCATTER.replace(
    "V[T.int64(P[vi])] = W[vi]", "V[vi + T.int64(P[0])] = W[vi]\n        P[vi] = 1"
)
FOLLOWING = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[0])):
        with T.block("follow"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[0] = 1
"""
IDLE = "for t in T.serial(n):" + COPY.replace("\n", "\n    ")
RECURRENCE = BEHIND.replace("= Y[wh, wk]", "= Y[wh, wk] + Z[wh, 0]")

FILLED = """
for i in T.serial(8):
    with T.block("fill"):
        vi = T.axis.spatial(8, i)
        P[vi] = 1
    with T.block("gather"):
        wi = T.axis.spatial(8, i)
        V[wi] = Y[T.int64(P[wi]), 0]
"""
INNER = """
for i in T.serial(8):
    with T.block("inner"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            Y[vi, j] = X[vi, j]
"""
UNSAFE = """
for i in T.serial(4):
    with T.block("gather"):
        vi = T.axis.spatial(8, i)
        V[vi] = Y[T.int64(P[vi]), 0]
"""
STENCIL = """
for i in T.serial(8):
    with T.block("stencil"):
        vi = T.axis.spatial(8, i)
        V[vi] = W[vi] + W[vi + 1]
"""
STAGED = """
Q = T.decl_buffer((8, 8), "float32")""" + BEHIND.replace("Y[", "Q[")
AHEAD = STAGED.replace("X[vi, vj]", "Z[vi // 2, vj]")
FROM_INIT = STAGED.replace('SS", [h, k]', 'SR", [h, k]').replace(
    "        Z[wh, wk] = Q[wh, wk]",
    """        with T.init():
                V[wh] = Q[wh, 0]
            V[wh] = V[wh] + 1.0""",
)
ALLOCATED = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    for j in T.serial(8):
        R[j] = X[i, j]
    for k in T.serial(8):
        with T.block("inner"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = R[vk]
"""
ALLOCATED_SUM = """
for i in T.serial(8):
    R = T.alloc_buffer((8,), "float32")
    with T.block("inner"):
        vi = T.axis.spatial(8, i)
        with T.init():
            R[vi] = 0.0
        R[vi] = R[vi] + X[vi, 0]
"""
LANES = STAGED.replace("for j in T.serial", "for j in T.vectorized")
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
TRIANGLE_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(vi + 1, j)",
)

FETCH = """
L = T.decl_buffer((8, 8), "float32", scope="shared")
S = T.decl_buffer((n, 8, n), "float32")
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("fetch"):
            vi, vj = T.axis.remap("SS", [i, j])
            L[vi, vj] = X[vi, vj]
    for k in T.serial(8):
        with T.block("use"):
            wi, wk = T.axis.remap("SS", [i, k])
            Y[wi, wk] = L[wi, wk]
"""
PERHAPS_FETCHED = """
L = T.decl_buffer((8,), "float32")
for i in T.serial(8):
    for j in T.serial(n):
        with T.block("fetch"):
            vi, vj = T.axis.remap("SR", [i, j])
            L[vi] = W[vi]
    with T.block("use"):
        wi = T.axis.spatial(8, i)
        V[wi] = L[wi]
"""
BLOCKS = """
for i in T.serial(8):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("four"):
            vi, vx = T.axis.remap("SS", [i, x])
            Y[vi, vx] = X[vi, vx]
    for j in T.serial(8):
        with T.block("eight"):
            wi, wj = T.axis.remap("SS", [i, j])
            Z[wi, wj] = X[wi, wj]
"""
IN_BLOCKS = BLOCKS.replace("i in T.serial(8)", 'i in T.thread_binding(8, thread="blockIdx.x")')
THREADS = FETCH.replace(
    "for k in T.serial(8)", 'for k in T.thread_binding(8, thread="threadIdx.x")'
)
INSIDE = """
for i in T.serial(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("copy"):
                ui = T.axis.spatial(8, vi)
                uj = T.axis.spatial(8, j)
                Y[ui, uj] = X[ui, uj]
"""
READING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("copy"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, T.int64(P[j]))
            Y[vi, vj] = X[vi, vj]
"""
SHARED = """
for i in T.parallel(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("copy"):
                uj = T.axis.spatial(8, j)
                Y[vi, uj] = V[uj]
"""
REDUCED_INSIDE = """
for i in T.serial(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            with T.block("sum"):
                uj = T.axis.reduce(n, j)
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, uj]
"""
MEETING = """
for i, j in T.grid(8, n):
    with T.block("meet"):
        vi, vj = T.axis.remap("RR", [i, j])
        with T.init():
            V[vi] = 0.0
        V[vi] = V[vi] + X[vi, vj]
"""
OWN_BUFFER = """
for i in T.serial(8):
    R = T.alloc_buffer((64,), "float32")
    with T.block("copy"):
        vi = T.axis.spatial(8, i)
        R[vi] = V[vi]
    with T.block("use"):
        wi = T.axis.spatial(8, i)
        W[wi] = R[wi]
"""
FIRST = INSIDE.replace(
    "        for j in T.serial(8)",
    "        with T.init():\n            V[vi] = 0.0\n        for j in T.serial(8)",
)
STOPPING = INSIDE.replace(
    "        for j in T.serial(8)", "        T.where(Y[vi, 0] < 1.0)\n        for j in T.serial(8)"
)
MAYBE_EMPTY = SUM.replace("for j in T.serial(8)", "for j in T.serial(n)")
NEGATIVE = COPY.replace("T.serial(8)", "T.serial(n - 3)")
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
LOCAL = {"scope": "local"}
ROWS = {"buffer": "Y", "distance": 2}
COPIED = {"block": "copy", "buffer": "X", "distance": 2}
ALONG = {"loop": "j", "buffer": "X", "lanes": 8}
CASES = [
    *cases_of_caches.CASES,
    ("align.not_proved", READING, "align", ALONG),
    ("align.lanes", COPY, "align", {**ALONG, "lanes": 1}),
    ("align.rows", COPY, "align", {**ALONG, "lanes": 16}),
    ("align.rows", FETCH, "align", {**ALONG, "buffer": "S"}),
    ("align.buffer", FETCH, "align", {**ALONG, "buffer": "L"}),
    ("align.innermost", COPY, "align", {**ALONG, "loop": "i"}),
    ("align.start", LATE, "align", {**ALONG, "loop": "i"}),
    ("align.kind", PARALLEL, "align", {**ALONG, "loop": "i"}),
    ("split.factors", COPY, "split", {"loop": "j", "factors": (None, None)}),
    ("split.factors", COPY, "split", {"loop": "j", "factors": (None, 0)}),
    ("split.factors", COPY, "split", {"loop": "j", "factors": (None, "n")}),
    ("split.factors", COPY, "split", {"loop": "j", "factors": ()}),
    ("split.factors", COPY, "split", {"loop": "j", "factors": (2, 3)}),
    ("split.not_proved", SYMBOLIC, "split", {"loop": "i", "factors": (2, 3)}),
    ("split.start", LATE, "split", {"loop": "i", "factors": (None, 3)}),
    ("split.kind", PARALLEL, "split", {"loop": "i", "factors": (None, 3)}),
    ("unroll.kind", PARALLEL, "unroll", {"loop": "i"}),
    ("unroll.extent", SYMBOLIC, "unroll", {"loop": "i"}),
    ("vectorize.kind", PARALLEL, "vectorize", {"loop": "i"}),
    ("vectorize.rest", COPY, "vectorize", {"loop": "i", "rest": "skipped"}),
    ("vectorize.innermost", COPY, "vectorize", {"loop": "i"}),
    ("vectorize.extent", TRIANGLE, "vectorize", {"loop": "j"}),
    ("vectorize.innermost", SYMBOLIC, "vectorize", {"loop": "i"}),
    ("vectorize.race", ONE_ELEMENT, "vectorize", {"loop": "i"}),
    ("vectorize.not_proved", SCATTER, "vectorize", {"loop": "i"}),
    ("vectorize.not_proved", LANES_MEET, "vectorize", {"loop": "i"}),
    ("vectorize.not_reducer", LAST_WINS, "vectorize", {"loop": "j"}),
    ("vectorize.not_reducer", SATURATING, "vectorize", {"loop": "j"}),
    ("parallel.kind", COPY.replace("for j in T.serial", "for j in T.unroll"), "parallel",
     {"loop": "j"}),
    ("parallel.nested", PARALLEL, "parallel", {"loop": "j", "accumulate": "privatised"}),
    ("parallel.race", SUM, "parallel", {"loop": "j"}),
    ("parallel.not_proved", SCATTER, "parallel", {"loop": "i"}),
    ("parallel.not_proved", SCALED, "parallel", {"loop": "i"}),
    ("parallel.not_proved", CHANGING, "parallel", {"loop": "i"}),
    ("parallel.weight", COPY, "parallel", {"loop": "i", "weight": "8 - i"}),
    ("parallel.weight", COPY, "parallel", {"loop": "i", "weight": "n * i"}),
    ("parallel.weight", COPY, "parallel", {"loop": "i", "weight": "T.int64(P[i])"}),
    ("parallel.text", COPY, "parallel", {"loop": "i", "weight": "i +"}),
    ("parallel.not_proved", "T.assume(monotone(P))" + COPY, "parallel",
     {"loop": "i", "weight": "T.int64(P[i + 1])"}),
    ("parallel.text", COPY, "parallel", {"loop": "i", "weight": "T.int64(P[0, i])"}),
    ("split.text", COPY, "split", {"loop": "i", "factors": (None, "width")}),
    ("parallel.grain", COPY, "parallel", {"loop": "i", "grain": 0}),
    ("prefetch.distance", COPY, "prefetch", {**COPIED, "loop": "i", "distance": 0}),
    ("prefetch.no_access", COPY, "prefetch", {**COPIED, "buffer": "Y", "loop": "i"}),
    ("prefetch.no_access", BEHIND, "prefetch", {"block": "second", **ROWS, "loop": "i"}),
    ("prefetch.range", COPY.replace("X[vi, vj]", "X[vj, vi]"), "prefetch",
     {**COPIED, "loop": "i"}),
    ("prefetch.range", COPY.replace("X[vi, vj]", "X[vi, 2 * vj]"), "prefetch",
     {**COPIED, "loop": "i"}),
    ("prefetch.changing", OWN_BUFFER, "prefetch",
     {"block": "use", "buffer": "R", "loop": "i", "distance": 1}),
    ("prefetch.changing", FILLED, "prefetch", {"block": "gather", **ROWS, "loop": "i"}),
    ("reorder.loops", COPY, "reorder", {"loops": ("i",)}),
    ("reorder.loops", COPY, "reorder", {"loops": ("i", "i")}),
    ("reorder.not_nested", TWO_COPIES, "reorder", {"loops": ("k", "j")}),
    ("reorder.not_nested", TWO_COPIES, "reorder", {"loops": ("j", "i")}),
    ("reorder.kind", PARALLEL, "reorder", {"loops": ("j", "i")}),
    ("reorder.dependence", TRIANGLE, "reorder", {"loops": ("j", "i")}),
    ("reorder.not_proved", SKEWED, "reorder", {"loops": ("j", "i")}),
    ("reorder.not_proved", REPEATED_INIT, "reorder", {"loops": ("j", "t")}),
    ("reorder.not_proved", FOLLOWING, "reorder", {"loops": ("j", "i")}),
    ("cache_write.not_proved", IDLE, "cache_write", {"block": "copy", "buffer": "Y", **LOCAL}),
    ("annotate.reserved", COPY, "annotate", {"name": "i", "key": "reassociates", "value": True}),
    ("annotate.refused", COPY, "annotate", {"name": "i", "key": "horizontal_fuse", "value": True}),
    ("annotate.no_name", COPY, "annotate", {"name": "nowhere", "key": "a", "value": 1}),
    ("unannotate.no_key", COPY, "unannotate", {"name": "i", "key": "a"}),
    ("fuse.loops", COPY, "fuse", {"loops": ("i",)}),
    ("fuse.not_nested", TWO_COPIES, "fuse", {"loops": ("i", "j")}),
    ("fuse.not_nested", COPY, "fuse", {"loops": ("j", "i")}),
    ("fuse.start", LATE, "fuse", {"loops": ("i", "j")}),
    ("fuse.kind", PARALLEL, "fuse", {"loops": ("i", "j")}),
    ("fuse.dependence", TRIANGLE, "fuse", {"loops": ("i", "j")}),
    ("fuse.not_proved", MAYBE_EMPTY, "fuse", {"loops": ("i", "j")}),
    ("fuse.not_proved", MEETING, "fuse", {"loops": ("i", "j")}),
    ("fuse.not_proved", NEGATIVE, "fuse", {"loops": ("i", "j")}),
    ("fuse.not_proved", FOLLOWING, "fuse", {"loops": ("i", "j")}),
    ("lift_loop.not_alone", COPY, "lift_loop", {"loop": "j"}),
    ("lift_loop.init", FIRST, "lift_loop", {"loop": "j"}),
    ("lift_loop.init", REDUCED_INSIDE, "lift_loop", {"loop": "j"}),
    ("lift_loop.not_proved", STOPPING, "lift_loop", {"loop": "j"}),
    ("bind.thread", COPY, "bind", {"loop": "i", "thread": "threadIdx.w"}),
    ("bind.start", LATE, "bind", {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.twice", BLOCKS, "bind", {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.extent", IN_BLOCKS, "bind", {"loop": "j", "thread": "threadIdx.x"}),
    ("bind.extent", SYMBOLIC, "bind", {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.race", SUM, "bind", {"loop": "j", "thread": "blockIdx.x"}),
    ("bind.race", SKEWED, "bind", {"loop": "i", "thread": "blockIdx.x"}),
    ("bind.not_proved", SCATTER, "bind", {"loop": "i", "thread": "threadIdx.x"}),
    ("bind.not_reducer", LAST_WINS, "bind", {"loop": "j", "thread": "threadIdx.x"}),
    ("pipeline.stages", FETCH, "pipeline", {"loop": "i", "stages": 1}),
    ("pipeline.no_producer", COPY, "pipeline", {"loop": "i"}),
    ("pipeline.no_producer", FETCH.replace("= X[", "= Y["), "pipeline", {"loop": "i"}),
    ("pipeline.not_proved", FETCH.replace("L[wi, wk]", "L[wk, wi]"), "pipeline", {"loop": "i"}),
    ("pipeline.not_proved", PERHAPS_FETCHED, "pipeline", {"loop": "i"}),
    ("parallel.pipelined", FETCH.replace("T.serial(8)", "T.serial(8, annotations={'pipeline': 2})", 1),
     "parallel", {"loop": "i"}),
    ("set_scope.scope", FETCH, "set_scope", {"buffer": "L", "scope": "l1"}),
    ("set_scope.parameter", COPY, "set_scope", {"buffer": "X", "scope": "local"}),
    ("set_scope.threads", THREADS, "set_scope", {"buffer": "L", "scope": "local"}),
    ("storage_align.parameter", COPY, "storage_align", {"buffer": "X", "axis": 0, "factor": 16}),
    ("storage_align.axis", FETCH, "storage_align", {"buffer": "L", "axis": 1, "factor": 16}),
    ("storage_align.factor", FETCH, "storage_align", {"buffer": "L", "axis": 0, "factor": 0}),
    ("storage_align.factor", FETCH, "storage_align",
     {"buffer": "L", "axis": 0, "factor": 4, "offset": 4}),
    ("storage_align.shape", FETCH, "storage_align",
     {"buffer": "S", "axis": 0, "factor": 4, "offset": 1}),
    ("sample_categorical.name", COPY, "sample_categorical", {"name": "a b", "candidates": (1,)}),
    ("sample_categorical.candidates", COPY, "sample_categorical", {"name": "a", "candidates": ()}),
    ("sample_categorical.candidates", COPY, "sample_categorical",
     {"name": "a", "candidates": (1, 2), "weights": (0, 0)}),
    ("sample_categorical.decision", COPY, "sample_categorical",
     {"name": "a", "candidates": (1, 2), "decision": 2}),
    ("sample_perfect_tile.name", COPY, "sample_perfect_tile", {"loop": "i", "name": "", "parts": 2}),
    ("sample_perfect_tile.parts", COPY, "sample_perfect_tile", {"loop": "i", "name": "t", "parts": 1}),
    ("sample_perfect_tile.largest", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "largest": 0}),
    ("sample_perfect_tile.decision", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "decision": (8,)}),
    ("sample_perfect_tile.decision", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "decision": (2, None)}),
    ("cache_read.scope", SUM, "cache_read", {"block": "sum", "buffer": "X", "scope": "l1"}),
    ("cache_read.inner", ALLOCATED, "cache_read", {"block": "inner", "buffer": "R", **LOCAL}),
    ("cache_read.no_buffer", SUM, "cache_read", {"block": "sum", "buffer": "Q", **LOCAL}),
    ("cache_read.loads", SUM, "cache_read", {"block": "sum", "buffer": "Y", **LOCAL}),
    ("cache_read.written", SUM, "cache_read", {"block": "sum", "buffer": "V", **LOCAL}),
    ("cache_read.domain", FILLED, "cache_read", {"block": "gather", "buffer": "Y", **LOCAL}),
    ("cache_read.domain", INNER, "cache_read", {"block": "inner", "buffer": "X", **LOCAL}),
    ("cache_read.not_proved", UNSAFE, "cache_read", {"block": "gather", "buffer": "Y", **LOCAL}),
    ("cache_read.race", SHARED, "cache_read", {"block": "copy", "buffer": "V", **LOCAL}),
    ("reindex_cache_read.race", SHARED, "reindex_cache_read",
     {"block": "copy", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.race", SHARED, "reindex_cache_write",
     {"block": "copy", "buffer": "Y", **LOCAL}),
    ("reindex_cache_read.single", STENCIL, "reindex_cache_read",
     {"block": "stencil", "buffer": "W", **LOCAL}),
    ("reindex_cache_read.order", COPY, "reindex_cache_read",
     {"block": "copy", "buffer": "X", "order": ("vi",), **LOCAL}),
    ("reindex_cache_read.shape", TRIANGLE_DOMAIN, "reindex_cache_read",
     {"block": "lower", "buffer": "X", **LOCAL}),
    ("reindex_cache_write.initialised", REPEATED, "reindex_cache_write",
     {"block": "sum", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.initialised", LET_MIN, "reindex_cache_write",
     {"block": "least", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.not_proved", SCATTER, "reindex_cache_write",
     {"block": "scatter", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.order", COPY, "reindex_cache_write",
     {"block": "copy", "buffer": "Y", "order": ("vi", "vj", "vk"), **LOCAL}),
    ("reindex_cache_write.element", ELEMENT, "reindex_cache_write",
     {"block": "last", "buffer": "Y", **LOCAL}),
    ("cache_write.scope", SUM, "cache_write", {"block": "sum", "buffer": "V", "scope": "l1"}),
    ("cache_write.no_buffer", SUM, "cache_write", {"block": "sum", "buffer": "Q", **LOCAL}),
    ("cache_write.stores", SUM, "cache_write", {"block": "sum", "buffer": "X", **LOCAL}),
    ("cache_write.stores", SEVERAL_STORES, "cache_write",
     {"block": "scatter", "buffer": "V", **LOCAL}),
    ("cache_write.reads", LOCAL_COPY, "cache_write", {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.element", ELEMENT, "cache_write", {"block": "last", "buffer": "Y", **LOCAL}),
    ("cache_write.element", REPEATED, "cache_write", {"block": "sum", "buffer": "V", **LOCAL}),
    ("cache_write.not_proved", HALF, "cache_write", {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.not_proved", SOMETIMES, "cache_write", {"block": "some", "buffer": "V", **LOCAL}),
    ("cache_write.predicate", ODD, "cache_write", {"block": "copy", "buffer": "Y", **LOCAL}),
    ("cache_write.domain", OUTER_DOMAIN, "cache_write",
     {"block": "lower", "buffer": "Y", **LOCAL}),
    ("cache_write.other_access", TWO_COPIES, "cache_write",
     {"block": "first", "buffer": "Y", **LOCAL}),
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
    ("transform_layout.parameter", COPY, "transform_layout",
     {"buffer": "Y", "index_map": "i, j -> j, i"}),
    ("transform_layout.kind", LANES, "transform_layout",
     {"buffer": "Q", "index_map": "i, j -> i, j // 2, j % 2"}),
    ("transform_layout.kind", VECTOR, "transform_layout",
     {"buffer": "Q", "index_map": "i -> i // 4, i % 4"}),
    ("reverse_compute_inline.kind",
     LANES.replace("[h, k])", "[h, k])\n            T.where(wk < wh)"),
     "reverse_compute_inline", {"block": "second"}),
    ("transform_layout.map", STAGED, "transform_layout", {"buffer": "Q", "index_map": "i -> i"}),
    ("transform_layout.map", STAGED, "transform_layout", {"buffer": "Q", "index_map": "i, j"}),
    ("transform_layout.map", STAGED, "transform_layout", {"buffer": "Q", "index_map": "i, j -> ,"}),
    ("transform_layout.not_proved", STAGED, "transform_layout",
     {"buffer": "Q", "index_map": "i, j -> i, j // 2"}),
    ("transform_layout.padding", STAGED, "transform_layout",
     {"buffer": "Q", "index_map": "i, j -> i, j // 3, j % 3"}),
    ("transform_layout.padding", STAGED, "transform_layout",
     {"buffer": "Q", "index_map": "i, j -> i, j // 3, j % 3", "pad": "none"}),
    ("transform_layout.other_access", STAGED.replace('"float32")', '"float32")\nT.assume(monotone(Q))'),
     "transform_layout", {"buffer": "Q", "index_map": "i, j -> j, i"}),
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
NESTED_ITERATION = parse_module("""
@T.prim_func
def shift(x: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "shift") as [i, j]:
        X[i, j] = X[j, i] + 1.0
""")
FUSED_ITERATION = parse_module("""
@T.prim_func
def scale(indptr: T.handle, indices: T.handle, a: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (indptr, indices))
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scale") as [i, j]:
        A[i, j] = A[i, j] * 2.0
""")
SHARES = """
@T.prim_func
def shares(p: T.handle, q: T.handle, a: T.handle, y: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    S = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
        with T.init():
            S[i] = 0.0
        S[i] = S[i] + A[i, j]
    with T.sp.iteration([I, J], "SS", "share") as [k, l]:
        A[k, l] = A[k, l] / S[k]
"""
BETWEEN = (
    '    with T.sp.iteration([I, J], "SS",',
    """    with T.sp.iteration([I], "S", "between") as [h]:
        S[h] = S[h] + Y[h]
    with T.sp.iteration([I, J], "SS",""",
)
INTO = {"iteration": "sum", "into": "share", "var": "k"}
COORDINATE_CASES = [
    *cases_of_caches.MODULE_CASES,
    ("sparse_compute_at.variable", parse_module(SHARES), INTO | {"var": "i"}),
    ("sparse_compute_at.axes", parse_module(SHARES), INTO | {"var": "l"}),
    ("sparse_compute_at.scope", parse_module(SHARES),
     {"iteration": "share", "into": "sum", "var": "i"}),
    ("sparse_compute_at.other_access", parse_module(SHARES.replace(*BETWEEN)), INTO),
    ("sparse_compute_at.init", parse_module(SHARES.replace("S[i] = 0.0", "S[0] = 0.0").replace(
        "S[i] = S[i] +", "S[0] = S[0] +")), INTO),
    ("sparse_compute_at.dependence", parse_module(SHARES.replace("/ S[k]", "/ S[0]")), INTO),
    ("sparse_reorder.order", examples.SPMM_COORDINATE, {"iteration": "csrmm", "order": ("i", "j")}),
    ("sparse_reorder.dependence", examples.SPMM_COORDINATE,
     {"iteration": "csrmm", "order": ("j", "i", "k")}),
    ("sparse_reorder.not_proved", NESTED_ITERATION, {"iteration": "shift", "order": ("j", "i")}),
    ("sparse_reorder.fused", FUSED_ITERATION, {"iteration": "scale", "order": ("j", "i")}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I",)}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "K")}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "I")}),
    ("sparse_fuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("I", "J")}),
    ("sparse_unfuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("J", "I")}),
    ("sparse_unfuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "J")}),
    ("sparse_fuse.chain", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "K")}),
    ("transform_layout.sparse",
     cache_read(examples.SPMM_POSITION, "csrmm", buffer="A", scope="local").module,
     {"buffer": "A_local", "index_map": "i, j -> j, i"}),
]  # fmt: skip
REPLAY_CASES = [
    ("replay.no_primitive", Step("tile", {})),
    ("replay.arguments", Step("unroll", {})),
    ("replay.arguments", Step("unroll", {"loop": "i", "times": 2})),
    ("replay.arguments", Step("unroll", {"loop": 3})),
    ("replay.arguments", Step("split", {"loop": "i", "factors": "16"})),
]
COORDINATE_PRIMITIVES = ("sparse_compute_at", "sparse_fuse", "sparse_reorder", "sparse_unfuse")
ANY_STAGE = ("annotate", "sample_categorical", "unannotate")
ARGUMENTS = {
    "add_unit_loop": {"name": "i"},
    **cases_of_caches.ARGUMENTS,
    "align": ALONG,
    "annotate": {"name": "i", "key": "a", "value": 1},
    "bind": {"loop": "i", "thread": "blockIdx.x"},
    "decompose_padding": {"block": "copy", "loop": "i"},
    "fission": {"loop": "i"},
    "fuse": {"loops": ("i", "j")},
    "loop_partition": {"loop": "i", "points": (1,)},
    "specialize": {"name": "i", "condition": "n == 1"},
    "unsafe_set_dtype": {"buffer": "X", "dtype": "float64"},
    "lift_loop": {"loop": "j"},
    "pipeline": {"loop": "i"},
    "sample_categorical": {"name": "a", "candidates": (1, 2)},
    "sample_perfect_tile": {"loop": "i", "name": "t", "parts": 2},
    "set_scope": {"buffer": "X", "scope": "local"},
    "storage_align": {"buffer": "X", "axis": 0, "factor": 16},
    "unannotate": {"name": "i", "key": "a"},
    "unsafe_parallel": {"loop": "i"},
    "unsafe_reorder": {"loops": ("i", "j")},
    "unsafe_vectorize": {"loop": "j"},
    "split": {"loop": "i", "factors": (None, 2)},
    "reorder": {"loops": ("i", "j")},
    "parallel": {"loop": "i"},
    "prefetch": {"block": "copy", "buffer": "X", "loop": "i", "distance": 2},
    "vectorize": {"loop": "i"},
    "unroll": {"loop": "i"},
    "cache_read": {"block": "copy", "buffer": "X", "scope": "local"},
    "cache_write": {"block": "copy", "buffer": "Y", "scope": "local"},
    "compute_at": {"block": "copy", "loop": "i"},
    "transform_layout": {"buffer": "Q", "index_map": "i -> i"},
    "compute_inline": {"block": "copy"},
    "reverse_compute_inline": {"block": "copy"},
    "reindex_cache_read": {"block": "copy", "buffer": "X", "scope": "local"},
    "reindex_cache_write": {"block": "copy", "buffer": "Y", "scope": "local"},
    "reverse_compute_at": {"block": "copy", "loop": "i"},
    "blockize": {"loop": "i"},
    "rfactor": {"loop": "i"},
    "sparse_tensorize": {"loop": "i", "intrinsic": "dot_4"},
    "tensorize": {"loop": "i", "intrinsic": "dot_4"},
    "decompose_reduction": {"block": "copy", "loop": "i"},
    "sparse_compute_at": {"iteration": "csrmm", "into": "csrmm", "var": "i"},
    "sparse_fuse": {"iteration": "csrmm", "axes": ("I", "J")},
    "sparse_unfuse": {"iteration": "csrmm", "axes": ("I", "J")},
    "sparse_reorder": {"iteration": "csrmm", "order": ("i", "j", "k")},
}


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code.removeprefix("schedule.")


@pytest.mark.parametrize(
    ("code", "body", "op", "arguments"), CASES, ids=[code for code, *_ in CASES]
)
def test_refusals(program, code, body, op, arguments):
    assert code_of(apply, program(body), Step(op, arguments)) == code


@pytest.mark.parametrize(("code", "module", "arguments"), COORDINATE_CASES)
def test_refusals_at_the_coordinate_stage(code, module, arguments):
    op = code.partition(".")[0]
    assert code_of(apply, module, Step(op, arguments)) == code


@pytest.mark.parametrize(("code", "step"), REPLAY_CASES)
def test_refusals_of_traces(code, step):
    assert code_of(replay, examples.SCALE, (step,)) == code


def right_stage(op, program):
    return examples.SPMM_COORDINATE if op in COORDINATE_PRIMITIVES else program(COPY)


@pytest.mark.parametrize("op", sorted(PRIMITIVES.keys() - set(ANY_STAGE)))
def test_the_wrong_stage_is_refused(program, op):
    wrong = program(COPY) if op in COORDINATE_PRIMITIVES else examples.SPMM_COORDINATE
    assert code_of(apply, wrong, Step(op, ARGUMENTS[op])) == f"{op}.stage"


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
def test_an_unknown_function_is_refused(program, op):
    module = right_stage(op, program)
    found = code_of(apply, module, Step(op, ARGUMENTS[op] | {"function": "other"}))
    assert found == f"{op}.no_function"


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
@pytest.mark.parametrize("what", ["loop", "loops", "block", "iteration"])
def test_an_unknown_name_is_refused_and_what_exists_is_listed(program, op, what):
    arguments = ARGUMENTS[op]
    if what not in arguments:
        return
    unknown = ("i", "nowhere") if what == "loops" else "nowhere"
    with pytest.raises(ScheduleError, match="'nowhere'") as caught:
        apply(right_stage(op, program), Step(op, arguments | {what: unknown}))
    assert caught.value.code == f"schedule.{op}.no_{what.removesuffix('s')}"
    listed = {"block": "copy", "iteration": "csrmm"}.get(what, "i, j")
    assert listed in str(caught.value)


def test_look_ups_name_what_exists(program):
    module = program(COPY)
    assert get_loops(module) == get_loops(module, "copy") == ("i", "j")
    assert get_blocks(module) == ("copy",)
    assert get_iterations(examples.SPMM_COORDINATE) == ("csrmm",)
    assert code_of(get_loops, module, "nowhere") == "get_loops.no_block"


PINNED_ELSEWHERE = {
    "add_unit_loop.no_name",
    "decompose_padding.not_enclosing",
    "decompose_padding.not_proved",
    "decompose_padding.other_access",
    "decompose_padding.pattern",
    "fission.dependence",
    "fission.not_proved",
    "fission.parts",
    "fission.scope",
    "handle.foreign",
    "handle.gone",
    "handle.several",
    "loop_partition.not_proved",
    "loop_partition.points",
    "loop_partition.text",
    "lower.last",
    "lower.no_passes",
    "lower.stage",
    "parallel.accumulate",
    "parallel.no_sum",
    "parallel.not_atomic",
    "parallel.parts",
    "reindex_cache_write.shared",
    "sample.no_value",
    "specialize.condition",
    "specialize.init",
    "specialize.no_name",
    "specialize.not_proved",
    "specialize.text",
    "split.depth",
    "storage_align.sparse",
    "tensorize.alias",
    "tensorize.indirect",
    "tensorize.init",
    "tensorize.intrinsic",
    "tensorize.layout",
    "tensorize.match",
    "tensorize.no_intrinsic",
    "tensorize.not_proved",
    "tensorize.predicate",
    "tensorize.store",
    "trace.json",
    "trace.steps",
    "unannotate.needed",
    "undo.steps",
    "unsafe_set_dtype.dtype",
    "unsafe_set_dtype.other_access",
    "unsafe_set_dtype.parameter",
    "vectorize.accumulate",
}
"""These are tested in test_schedule_atomic.py, _lane_terms.py, _builder.py, _loop_steps.py, _accumulated.py,
_refused_parts.py and _tensorize.py."""
COMMON = {"no_function", "no_loop", "no_block", "no_iteration", "no_buffer", "stage", "kind"}


def refusals_of_source():
    """The code of each error in the source (`*` stands for parts that are only known at run time), and its
    keywords."""
    root = Path(gossamer_schedule.__file__).parent
    for path in root.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "schedule_error":
                text = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
                code = re.sub(r"{[^}]+}", "*", text.replace("{_NAME}", path.stem))
                yield code, {keyword.arg for keyword in call.keywords}


def test_every_code_has_a_case():
    reasons = {code for code, _ in refusals_of_source() if "." in code}
    codes = {code for code in reasons if code.split(".")[1] not in COMMON}
    cases = {case[0] for case in (*CASES, *COORDINATE_CASES, *REPLAY_CASES)} | PINNED_ELSEWHERE
    pinned = {code for code in cases if code.split(".")[1] not in COMMON}
    assert [code for code in sorted(codes) if not fnmatch.filter(pinned, code)] == []
    assert [code for code in pinned if not any(fnmatch.fnmatch(code, each) for each in codes)] == []
    assert len(pinned) > 30


def test_what_is_not_proved_shows_what_it_needs():
    missing = [
        code
        for code, keywords in refusals_of_source()
        if code.endswith("not_proved") and "needs" not in keywords
    ]
    assert missing == []
