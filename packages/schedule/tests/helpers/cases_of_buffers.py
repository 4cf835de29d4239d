"""Programs that primitives on buffers must reject, with the error codes; `cases_of_caches` has more."""

from __future__ import annotations

from nest_programs import COPY, SUM
from refused_programs import (
    FETCH,
    FILLED,
    LANES,
    LAST_WINS,
    REPEATED,
    SCATTER,
    STAGED,
    TRIANGLE,
    TWO_COPIES,
)

SOMETIMES = """
for i in T.serial(8):
    with T.block("some"):
        vi = T.axis.spatial(8, i)
        if vi < 4:
            V[vi * 16] = W[vi]
"""
LET_MIN = """
for i in T.serial(8):
    with T.block("least"):
        vi = T.axis.spatial(8, i)
        t: T.float32 = X[vi, 0]
        V[vi] = T.min(V[vi], t)
"""
HALF = COPY.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(64, i * 2)\n            vj = T.axis.spatial(8, j)",
)
ODD = COPY.replace("Y[vi, vj] =", "T.where(i + j < 9)\n            Y[vi, vj] =")
VECTOR = """
Q = T.alloc_buffer((16,), "float32")
Q[T.ramp(4, 1, 4)] = V[T.ramp(0, 1, 4)]
W[T.ramp(0, 1, 4)] = Q[T.ramp(4, 1, 4)]
"""
LOCAL_COPY = COPY.replace("Y[vi, vj] =", "Y[vi, vj] = Y[vi, vj + 1] *")
SEVERAL_STORES = SCATTER.replace("V[T.int64(P[vi])] = W[vi]", "V[vi] = W[vi]\n        V[vi] = 1.0")
ELEMENT = LAST_WINS.replace("V[vi] =", "Y[vi, vj] =")
OUTER_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(i + 1, j)",
)
IDLE = "for t in T.serial(n):" + COPY.replace("\n", "\n    ")
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
TRIANGLE_DOMAIN = TRIANGLE.replace(
    'vi, vj = T.axis.remap("SS", [i, j])',
    "vi = T.axis.spatial(8, i)\n            vj = T.axis.spatial(vi + 1, j)",
)
THREADS = FETCH.replace(
    "for k in T.serial(8)", 'for k in T.thread_binding(8, thread="threadIdx.x")'
)
SHARED = """
for i in T.parallel(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("copy"):
                uj = T.axis.spatial(8, j)
                Y[vi, uj] = V[uj]
"""
LOCAL = {"scope": "local"}
CASES = [
    ("cache_write.not_proved", IDLE, "cache_write", {"block": "copy", "buffer": "Y", **LOCAL}),
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
    ("reindex_cache_write.initialized", REPEATED, "reindex_cache_write",
     {"block": "sum", "buffer": "V", **LOCAL}),
    ("reindex_cache_write.initialized", LET_MIN, "reindex_cache_write",
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
    ("transform_layout.parameter", COPY, "transform_layout",
     {"buffer": "Y", "index_map": "i, j -> j, i"}),
    ("transform_layout.kind", LANES, "transform_layout",
     {"buffer": "Q", "index_map": "i, j -> i, j // 2, j % 2"}),
    ("transform_layout.kind", VECTOR, "transform_layout",
     {"buffer": "Q", "index_map": "i -> i // 4, i % 4"}),
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
]  # fmt: skip
