"""Programs that primitives on loops must reject, with the error codes."""

from __future__ import annotations

from nest_programs import COPY, SUM
from refused_programs import (
    BEHIND,
    FETCH,
    FILLED,
    LAST_WINS,
    REPEATED_INIT,
    SCATTER,
    TRIANGLE,
    TWO_COPIES,
)

ONE_ELEMENT = SCATTER.replace("V[T.int64(P[vi])]", "V[0]")
LANES_MEET = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
SATURATING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(V[vi] < 5.0)
            V[vi] = V[vi] + X[vi, vj]
"""
SKEWED = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("skewed"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi + vj] = V[vi + vj + 1] + 1.0
"""
INIT_BY_LOOP = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[i])):
        with T.block("last"):
            vj = T.axis.reduce(8, j)
            with T.init():
                V[i] = 0
            V[i] = vj
"""
LATE = COPY.replace("T.serial(8):\n    for", "T.serial(2, 8):\n    for")
SYMBOLIC = COPY.replace("T.serial(8):\n    for", "T.serial(n):\n    for")
PARALLEL = COPY.replace("for i in T.serial", "for i in T.parallel")
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
ROWS = {"buffer": "Y", "distance": 2}
COPIED = {"block": "copy", "buffer": "X", "distance": 2}
ALONG = {"loop": "j", "buffer": "X", "lanes": 8}
CASES = [
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
    ("split.not_proved", INIT_BY_LOOP, "split", {"loop": "j", "factors": (2, None, 2)}),
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
    ("parallel.nested", PARALLEL, "parallel", {"loop": "j", "accumulate": "privatized"}),
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
    ("bind.duplicate", BLOCKS, "bind", {"loop": "i", "thread": "threadIdx.x"}),
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
]  # fmt: skip
