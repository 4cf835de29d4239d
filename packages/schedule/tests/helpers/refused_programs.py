"""Loop nests that primitives of several groups must reject, for the `program` fixture."""

from __future__ import annotations

from nest_programs import SUM

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
