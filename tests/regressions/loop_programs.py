"""The programs of `test_loop_schedules`."""

from __future__ import annotations

_COUNTING = """
@T.prim_func
def main(y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (SIZE,), "int32")
"""


def counting(body: str, *, size: str = "n") -> str:
    """A program of the loop stage that counts in `Y`."""
    return _COUNTING.replace("SIZE", size) + body.lstrip("\n")


COUNTED = counting("""
    for i in T.serial(4):
        with T.block("step"):
            vi = T.axis.spatial(4, i)
            with T.init():
                Y[0] = 0
            Y[0] = Y[0] + T.int32(vi)
""")
SUMMED = counting("""
    for j in T.serial(2):
        for i in T.serial(2):
            with T.block("step"):
                vj, vi = T.axis.remap("SS", [j, i])
                with T.init():
                    Y[vi] = 0
                Y[vi] = Y[vi] + T.int32(vj) + 1
""")
CONDITIONED = counting("""
    for i in T.serial(3):
        if n < 100:
            with T.block("step"):
                vi = T.axis.spatial(3, i)
                with T.init():
                    Y[vi // 3] = 0
                Y[vi // 3] = Y[vi // 3] + 1
""")
GOING_ON = counting("""
    for i in T.serial(3):
        if n < 100:
            with T.block("step"):
                vi = T.axis.spatial(3, i)
                Y[1] = Y[1] + 1
""")
TRIPLED = GOING_ON + "        Y[1] = Y[1] * 3\n"
STARTED = TRIPLED.replace(
    "                Y[1]",
    "                with T.init():\n                    Y[1] = 0\n                Y[1]",
)
IN_TURNS = counting(
    """
    for i in T.serial(3):
        if n < 100:
            for j in T.serial(2):
                with T.block("step"):
                    vi = T.axis.spatial(3, i)
                    vj = T.axis.reduce(2, j)
                    Y[1] = Y[1] + T.int32(vj)
""",
    size="2",
)
EVERY_TURN = counting("""
    for t in T.serial(3):
        for i in T.serial(4):
            with T.block("step"):
                vi = T.axis.spatial(4, i)
                with T.init():
                    Y[0] = 0
                Y[0] = Y[0] + 1
""")
TURNED = counting("""
    for t in T.serial(3):
        for i in T.serial(n):
            for j in T.serial(2):
                with T.block("step"):
                    vi = T.axis.spatial(n, i)
                    vj = T.axis.reduce(2, j)
                    with T.init():
                        Y[(vi + t) % n] = 0
                    Y[(vi + t) % n] = Y[(vi + t) % n] + 1
""")
AGAIN = """
@T.prim_func
def main(y: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (n,), "int32")
    P = T.match_buffer(p, (4,), "int64")
    for i in T.serial(4):
        for j in T.serial(P[i]):
            with T.block("step"):
                vj = T.axis.spatial(16, j)
                with T.init():
                    Y[0] = 0
                Y[0] = Y[0] + 1
"""
MASKED = """
@T.prim_func
def main(indptr: T.handle, a: T.handle, c: T.handle, y: T.handle, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (8, nnz), indptr, "int32")
    A = T.sp.match_buffer(a, (I, J), "int32")
    C = T.match_buffer(c, (2,), "int64")
    Y = T.match_buffer(y, (8,), "int32")
    for i in T.serial(2):
        with T.block("step"):
            vi = T.axis.spatial(8, C[i])
            T.where(A[1, vi] != 0)
            Y[vi] = A[1, vi]
"""
DROPPED = """
@T.prim_func
def main(y: T.handle, h: T.handle, p: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (m,), "int32")
    H = T.match_buffer(h, (m,), "int32")
    P = T.match_buffer(p, (8,), "int64")
    for i in T.serial(m):
        with T.block("step"):
            vi = T.axis.spatial(m, i)
            Y[vi] = H[P[vi % 8] - P[vi % 8]]
"""
COPIED_LOOP = """
@T.prim_func
def main(y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (4,), "int32")
    R = T.alloc_buffer((4,), "int32")
    for i in T.unroll(3):
        for j in T.serial(4):
            R[j] = 1
            Y[j] = R[j]
"""
SHARED = """
@T.prim_func
def main(z: T.handle, x: T.handle, p: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Z = T.match_buffer(z, (32,), "int32")
    X = T.match_buffer(x, (m, 16), "int32")
    P = T.match_buffer(p, (16,), "int64")
    T.assume(distinct(P))
    for i in T.serial(m):
        for k_0 in T.serial(4):
            for k in T.serial(4):
                if k_0 * 4 + k < 14:
                    Z[%s] = Z[%s] + X[i, k_0 * 4 + k]
"""
TOGETHER = """
@T.prim_func
def main(y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (8,), "int32")
    for t in T.serial(4):
        for i in T.serial(%s):
            with T.block("step"):
                vt, vi = T.axis.remap("SS", [t, i])
                with T.init():
                    Y[%s] = 0
                Y[%s] = Y[%s] + 1
"""
ABSENT_ROW = """
@T.prim_func
def main(a: T.handle, indptr: T.handle, p: T.handle, y: T.handle, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (8, nnz), indptr, "int32")
    A = T.sp.match_buffer(a, (I, J), "int32", default=2)
    P = T.match_buffer(p, (1,), "int64")
    Y = T.match_buffer(y, (1,), "int32")
    Y[0] = A[1, P[0]]
"""
UNREAD = """
@T.prim_func
def main(p: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int64")
    Y = T.match_buffer(y, (1,), "int64")
    R = T.alloc_buffer((4,), "int64")
    for i in T.serial(4):
        with T.block("make"):
            vi = T.axis.spatial(4, i)
            R[vi] = P[vi]
    Y[0] = R[0]
"""
IDLE = """
@T.prim_func
def main(p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int64")
    for i in T.serial(P[0], P[0] + n):
        pass
"""
UNUSED = """
@T.prim_func
def main(p: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int64")
    Y = T.match_buffer(y, (n,), "int64")
    for i in T.serial(P[1], P[1] + 1):
        with T.block("step"):
            vi = T.axis.spatial(64, P[2])
            T.where(P[0] > %s)
            Y[0] = vi
    with T.block("idle"):
        T.where(P[%s] > 0)
        pass
"""
ABSENT_BEFORE = """
@T.prim_func
def main(indptr: T.handle, a: T.handle, c: T.handle, y: T.handle, n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (8, nnz), indptr, "int32")
    K = T.sp.dense_fixed(3)
    A = T.sp.match_buffer(a, (I, J, K), "int32")
    C = T.match_buffer(c, (4,), "int64")
    Y = T.match_buffer(y, (1,), "int32")
    Y[0] = A[0, 1, C[5]]
"""
OWN_END = """
@T.prim_func
def main(z: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    Z = T.match_buffer(z, (4,), "int32")
    for i in T.serial(T.Select(Z[1] == 0, 3, 2)):
        with T.block("b"):
            vi = T.axis.spatial(8, i + 1)
            with T.init():
                Z[vi % 4 % 3] = 0
            Z[vi % 4 % 3] = 7
"""
OTHER_POINTS = """
@T.prim_func
def main(y: T.handle, q: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (4,), "int32")
    Q = T.match_buffer(q, (4,), "int32")
    for i in T.serial(n):
        for j in T.serial(4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                with T.init():
                    Y[T.int64(Q[vj])] = 1
                v: T.int32 = Y[vj]
                Y[T.int64(Q[vj])] = v + 1
"""
BEYOND = """
@T.prim_func
def main(slots: T.handle, g: T.handle, q: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    L = T.sp.compressed_fixed(I, (8, 1), slots, "int32")
    G = T.sp.match_buffer(g, (I, L), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    with T.block("b"):
        vi = T.axis.spatial(n, 0)
        T.where(Q[vi] == 1)
        G[1, 1] = G[1, 1] + 1
"""
IN_TURN = """
@T.prim_func
def main(x: T.handle, y: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (4,), "int32")
    Y = T.match_buffer(y, (4,), "int32")
    for i in T.serial(4):
        with T.block("use"):
            vi = T.axis.spatial(4, i)
            Y[vi] = X[vi]
"""
ELEMENT = """
@T.prim_func
def main(z: T.handle, q: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Z = T.match_buffer(z, (n,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    Y = T.match_buffer(y, (n,), "int32")
    for i in T.serial(n):
        with T.block("pick"):
            vi = T.axis.spatial(n, i)
            Y[vi] = Z[1] + Q[vi]
"""
WRAPPED_LAST = """
@T.prim_func
def main(y: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (8,), "int32")
    with T.block("b"):
        vi = T.axis.spatial(8, 0)
        T.where(vi + 9223372036854775807 < n)
        Y[vi] = Y[vi]
"""
