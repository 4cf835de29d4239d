"""Programs that several primitives must reject; texts are loop nests for the `program` fixture."""

from __future__ import annotations

from nest_programs import COPY, SUM

from gossamer_ir.script import parse_module

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
SCATTER = """
for i in T.serial(8):
    with T.block("scatter"):
        vi = T.axis.spatial(8, i)
        V[T.int64(P[vi])] = W[vi]
"""
LAST_WINS = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("last"):
            vi, vj = T.axis.remap("SR", [i, j])
            V[vi] = X[vi, vj]
"""
TRIANGLE = """
for i in T.serial(8):
    for j in T.serial(i + 1):
        with T.block("lower"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj]
"""
NO_INIT = SUM.replace("            with T.init():\n                V[vi] = 0.0\n", "")
REPEATED = "for t in T.serial(3):" + NO_INIT.replace("\n", "\n    ")
REPEATED_INIT = "for t in T.serial(3):" + SUM.replace("\n", "\n    ")
FILLED = """
for i in T.serial(8):
    with T.block("fill"):
        vi = T.axis.spatial(8, i)
        P[vi] = 1
    with T.block("gather"):
        wi = T.axis.spatial(8, i)
        V[wi] = Y[T.int64(P[wi]), 0]
"""
STAGED = """
Q = T.decl_buffer((8, 8), "float32")""" + BEHIND.replace("Y[", "Q[")
LANES = STAGED.replace("for j in T.serial", "for j in T.vectorized")
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
SKEWED = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("skewed"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi + vj] = V[vi + vj + 1] + 1.0
"""
LATE = COPY.replace("T.serial(8):\n    for", "T.serial(2, 8):\n    for")
SYMBOLIC = COPY.replace("T.serial(8):\n    for", "T.serial(n):\n    for")
PARALLEL = COPY.replace("for i in T.serial", "for i in T.parallel")
FOLLOWING = """
for i in T.serial(8):
    for j in T.serial(T.int64(P[0])):
        with T.block("follow"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[0] = 1
"""
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
SKEWED_SUM = SUM.replace(
    'vi, vj = T.axis.remap("SR", [i, j])',
    "vi = T.axis.spatial(8, 7 - i)\n            vj = T.axis.reduce(15, i + j)",
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
ELEMENT = LAST_WINS.replace("V[vi] =", "Y[vi, vj] =")
SHARED = """
for i in T.parallel(8):
    with T.block("row"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("copy"):
                uj = T.axis.spatial(8, j)
                Y[vi, uj] = V[uj]
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
OUTSIDE = "\n".join(
    ['Q = T.decl_buffer((10,), "float32")', *(x for x in WINDOW.splitlines() if "alloc" not in x)]
)
SHRINKING = """
for i in T.serial(T.int64(P[0])):
    for j in T.serial(2):
        with T.block("last"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vj] = P[vj] - 1
    V[i] = 0.0
"""
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
