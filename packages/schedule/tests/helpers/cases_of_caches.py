"""Programs that cache, window, sampling and blockize primitives must reject, with the error codes."""

from __future__ import annotations

from nest_programs import COPY, SUM

from gossamer_schedule import set_block_filter
from gossamer_testkit import examples

UPDATE = """
for i in T.serial(8):
    with T.block("update"):
        vi = T.axis.spatial(8, i)
        V[vi] = V[vi] + W[vi]
"""
BESIDE = UPDATE + "    W[i] = V[i]\n"
CONDITIONED = UPDATE.replace("        V[vi] =", "        T.where(V[vi] < 3.0)\n        V[vi] =")
BEYOND_ALL = """
R = T.decl_buffer((8,), "float32")
for i in T.serial(8):
    with T.block("beyond"):
        vi = T.axis.spatial(8, i)
        if vi < 3:
            R[9] = 1.0
"""
LOOKED_UP = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("looked_up"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[T.int64(P[T.int64(P[vi])]), vj]
"""
EPILOGUE = (
    """
Q = T.decl_buffer((8,), "float32")
"""
    + SUM.replace("V[", "Q[")
    + """
for k in T.serial(8):
    with T.block("after"):
        vk = T.axis.spatial(8, k)
        V[vk] = Q[vk] + W[vk]
"""
)
AFTER = {"block": "sum", "epilogue": "after"}
SMALL = EPILOGUE.replace("decl_buffer((8,)", "decl_buffer((n,)")
NO_INIT = EPILOGUE.replace("            with T.init():\n                Q[vi] = 0.0\n", "")
TWICE = EPILOGUE.replace("Q[vk] + W[vk]", "Q[vk] + Q[vk]")
PREFIX = EPILOGUE.replace("T.axis.spatial(8, k)", "T.axis.spatial(4, k)").replace(
    "for k in T.serial(8)", "for k in T.serial(4)"
)
NOT_ALL = EPILOGUE.replace("for k in T.serial(8)", "for k in T.serial(4)")
EVEN = EPILOGUE.replace("        V[vk] =", "        T.where(vk != 3)\n        V[vk] =")
FIRST = """
Q = T.decl_buffer((8,), "float32")
for k in T.serial(8):
    with T.block("after"):
        vk = T.axis.spatial(8, k)
        V[vk] = Q[vk] + W[vk]
""" + SUM.replace("V[", "Q[")
PARTIAL = """
Q = T.decl_buffer((8,), "float32")
for j in T.serial(8):
    for i in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Q[vi] = 0.0
            Q[vi] = Q[vi] + X[vi, vj]
    for k in T.serial(8):
        with T.block("after"):
            vk = T.axis.spatial(8, k)
            V[vk] = Q[vk] + W[vk]
"""
CHANGED_BETWEEN = EPILOGUE.replace("for k in", "W[0] = 1.0\nfor k in")
WINDOW = """
for i in T.serial(8):
    Q = T.alloc_buffer((10,), "float32")
    for j in T.serial(3):
        with T.block("made"):
            vj = T.axis.spatial(10, i + j)
            Q[vj] = W[vj]
    with T.block("used"):
        vi = T.axis.spatial(8, i)
        V[vi] = Q[vi] + Q[vi + 2]
"""
MADE = {"block": "made", "buffer": "Q"}
OUTSIDE = "\n".join(
    ['Q = T.decl_buffer((10,), "float32")', *(x for x in WINDOW.splitlines() if "alloc" not in x)]
)
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

CASES = [
    ("cache_inplace.loads", COPY, "cache_inplace", {"block": "copy", "buffer": "Y", "scope": "local"}),
    ("cache_inplace.loads", COPY, "cache_inplace", {"block": "copy", "buffer": "X", "scope": "local"}),
    ("cache_inplace.init", SUM, "cache_inplace", {"block": "sum", "buffer": "V", "scope": "local"}),
    ("cache_inplace.other_access", BESIDE, "cache_inplace",
     {"block": "update", "buffer": "V", "scope": "local"}),
    ("cache_inplace.other_access", CONDITIONED, "cache_inplace",
     {"block": "update", "buffer": "V", "scope": "local"}),
    ("cache_index.no_reuse", COPY, "cache_index", {"block": "copy", "scope": "local"}),
    ("cache_index.not_proved", LOOKED_UP, "cache_index", {"block": "looked_up", "scope": "local"}),
    ("cache_index.scope", LOOKED_UP, "cache_index", {"block": "looked_up", "scope": "cloud"}),
    ("fuse_reduction_epilogue.form", EPILOGUE, "fuse_reduction_epilogue",
     {"block": "sum", "epilogue": "sum"}),
    ("fuse_reduction_epilogue.reduction", NO_INIT, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.operation", TWICE, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.element", PREFIX, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.predicate", EVEN, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.scope", FIRST, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.scope", PARTIAL, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.other_access", CHANGED_BETWEEN, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.other_access", EPILOGUE + "W[0] = Q[0]", "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.not_proved", NOT_ALL, "fuse_reduction_epilogue", AFTER),
    ("fuse_reduction_epilogue.not_proved", SMALL, "fuse_reduction_epilogue", AFTER),
    ("hide_buffer_access.access", COPY, "hide_buffer_access",
     {"block": "copy", "access": "search", "buffers": ("X",)}),
    ("hide_buffer_access.region", COPY, "hide_buffer_access",
     {"block": "copy", "access": "write", "buffers": ("X",)}),
    ("hide_buffer_access.region", BEYOND_ALL, "hide_buffer_access",
     {"block": "beyond", "access": "write", "buffers": ()}),
    ("store_nontemporal.no_store", COPY, "store_nontemporal", {"block": "copy", "buffer": "X"}),
    ("store_nontemporal.read", SUM, "store_nontemporal", {"block": "sum", "buffer": "V"}),
    ("rolling_buffer.scope", OUTSIDE, "rolling_buffer", MADE),
    ("rolling_buffer.scope", BY_TWO, "rolling_buffer", MADE),
    ("rolling_buffer.scope", SIZED, "rolling_buffer", MADE),
    ("rolling_buffer.writers", WRITTEN_TWICE, "rolling_buffer", MADE),
    ("rolling_buffer.updates", ADDED, "rolling_buffer", MADE),
    ("rolling_buffer.changed", OVERWRITTEN, "rolling_buffer", MADE),
    ("rolling_buffer.changed", STARTED, "rolling_buffer", MADE),
    ("rolling_buffer.window", BY_ITERATION, "rolling_buffer", MADE),
    ("rolling_buffer.overlap", APART, "rolling_buffer", MADE),
    ("rolling_buffer.other_access", EARLIER, "rolling_buffer", MADE),
    ("rolling_buffer.not_proved", BEYOND, "rolling_buffer", MADE),
    ("rolling_buffer.not_proved", BY_FIRST, "rolling_buffer", MADE),
    ("rolling_buffer.kind", WINDOW.replace("i in T.serial", "i in T.unroll"), "rolling_buffer", MADE),
    ("sample_compute_location.move", OUTSIDE, "sample_compute_location",
     {"block": "made", "name": "place", "move": "split"}),
    ("sample_compute_location.no_candidate", COPY, "sample_compute_location",
     {"block": "copy", "name": "place"}),
    ("sample_compute_location.decision", EPILOGUE, "sample_compute_location",
     {"block": "after", "name": "place", "move": "reverse_compute_at", "decision": "j"}),
    ("set_block_filter.key", COPY, "set_block_filter", {"key": "not a key"}),
    ("unset_block_filter.no_filter", COPY, "unset_block_filter", {}),
    ("unsafe_match_to_alloc.allocated", EPILOGUE, "unsafe_match_to_alloc",
     {"block": "sum", "buffer": "Q"}),
    ("unsafe_match_to_alloc.stores", COPY, "unsafe_match_to_alloc", {"block": "copy", "buffer": "X"}),
]  # fmt: skip
"""The code, the program, the primitive and its arguments."""

FILTERED = set_block_filter(examples.SCALE, "group_0").module
MODULE_CASES = [("unsafe_match_to_alloc.filter", FILTERED, {"block": "scale", "buffer": "Y"})]
"""The code, the module and the arguments."""
