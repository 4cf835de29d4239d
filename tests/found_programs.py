"""Programs whose meaning a schedule once changed; `tests.test_found_schedules` tests them."""

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


RAGGED = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "R", "inner") as [j]:
            with T.init():
                Y[i] = 0
            Y[i] = Y[i] + 1
"""
SLOTTED = """
@T.prim_func
def main(y: T.handle, b: T.handle, indices_m: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    K = T.sp.dense_fixed(n0)
    M = T.sp.compressed_fixed(K, (6, n1), indices_m)
    B = T.sp.match_buffer(b, (K, M), "int32")
    Y = T.sp.match_buffer(y, (K,), "int32")
    with T.sp.iteration([K], "S", "step") as [k]:
        Y[k] = B[k, 1]
"""
BESIDE = """
@T.prim_func
def main(y: T.handle, z: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    Y = T.sp.match_buffer(y, (J,), "int32")
    Z = T.sp.match_buffer(z, (I, J), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "S", "first") as [j]:
            Z[i, j] = 1
        with T.sp.iteration([J], "S", "second") as [k]:
            with T.init():
                Y[k] = 0
            Y[k] = Y[k] + 1
"""
MEETING = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    K = T.sp.dense_fixed(n2)
    Y = T.sp.match_buffer(y, (K,), "int32")
    with T.sp.iteration([I, K, J], "SSR", "step") as [i, k, j]:
        with T.init():
            Y[k] = 0
        Y[k] = Y[k] + 1
"""
COUNTED = counting("""
    for i in T.serial(4):
        with T.block("step"):
            vi = T.axis.spatial(4, i)
            with T.init():
                Y[0] = 0
            Y[0] = Y[0] + T.int32(vi)
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
PARTS = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    K = T.sp.dense_fixed(n2)
    X = T.sp.match_buffer(x, (J,), "int32")
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([J, I, K], "RSR", "step") as [j, i, k]:
        with T.init():
            Y[i] = 0
        Y[i] = Y[i] + X[j]
"""
ROWS = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "S", "inner") as [j]:
            Y[i, j] = X[i]
"""

ATTACHED = """
@T.prim_func
def main(x: T.handle, y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    K = T.sp.dense_fixed(n2)
    X = T.sp.match_buffer(x, (K,), "bool")
    Y = T.sp.match_buffer(y, (K,), "int32")
    with T.sp.iteration([K, T.sp.attach(J, K)], "SR", "step") as [k, j]:
        Y[k] = Y[k] + T.select(X[k], 2, 1)
"""
NESTED = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    X = T.sp.match_buffer(x, (J,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I], "R", "outer") as [i]:
        with T.sp.iteration([J], "S", "inner") as [j]:
            Y[i, j] = X[j]
"""
PRODUCTS = """
@T.prim_func
def main(x: T.handle, indptr_j: T.handle, indptr_l: T.handle, offsets: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    L = T.sp.dense_varied(I, n1, indptr_l)
    X = T.sp.match_buffer(x, (I, J, L), "int32", offsets=offsets)
    with T.sp.iteration([I, J, L], "SSS", "step") as [i, j, l]:
        X[i, j, l] = X[i, j, l] + 1
"""
GATHERED = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1, parent=I)
    K = T.sp.dense_fixed(4)
    X = T.sp.match_buffer(x, (K,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I, J], "SS", "step") as [i, j]:
        Y[i, j] = X[j]
"""
FIBRES = """
@T.prim_func
def main(x: T.handle, y: T.handle, indptr_j: T.handle, indices_j: T.handle, indptr_k: T.handle,
         n0: T.int64, n1: T.int64, n2: T.int64, n3: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (n1, n2), (indptr_j, indices_j), "int32")
    K = T.sp.dense_varied(J, (4, n3), indptr_k, "int32")
    X = T.sp.match_buffer(x, (I, J, K), "int32")
    Y = T.sp.match_buffer(y, (I, J, K), "int32")
    with T.sp.iteration([I, J, K], "SSS", "step") as [i, j, k]:
        Y[i, j, k] = X[i, j, k] + 1
"""
SUMMED = """
@T.prim_func
def main(x: T.handle, y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    X = T.sp.match_buffer(x, (I, J), "int32")
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, J], "SR", "step") as [i, j]:
        with T.init():
            Y[i] = 0
        Y[i] = Y[i] + X[i, j]
"""
TWOFOLD = """
@T.prim_func
def main(x: T.handle, y: T.handle, w: T.handle, z: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    X = T.sp.match_buffer(x, (I, J), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    W = T.sp.match_buffer(w, (I,), "int32")
    Z = T.sp.match_buffer(z, (I,), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "S", "inner") as [j]:
            Y[i, j] = X[i, j]
        Z[i] = W[i]
"""
INDEXED = """
@T.prim_func
def main(p: T.handle, x: T.handle, y: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(n1)
    P = T.sp.match_buffer(p, (I,), "int32")
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I, J], "SS", "step") as [i, j]:
        Y[i, j] = X[T.int64(P[i])]
"""

UNSIZED = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indptr_k: T.handle, indices_k: T.handle,
         indptr_l: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, (n1, n2), indptr_j)
    K = T.sp.compressed_varied(J, n1, (indptr_k, indices_k))
    L = T.sp.dense_varied(K, n1, indptr_l)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, J, T.sp.fuse(K, L)], "SRRR", "step") as [i, j, k, l]:
        Y[i] = Y[i] + T.int32(k)
"""
STORED = """
@T.prim_func
def main(indptr_k: T.handle, indices_k: T.handle, indptr_m: T.handle, indices_m: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    K = T.sp.compressed_varied(I, n1, (indptr_k, indices_k))
    M = T.sp.compressed_varied(I, n1, (indptr_m, indices_m))
    L = T.sp.dense_fixed(2)
    B = T.sp.alloc_buffer((I, M), "int32")
    with T.sp.iteration([I, K], "SS", "outer") as [i, k]:
        with T.sp.iteration([L], "R", "inner") as [l]:
            with T.init():
                B[i, k] = 1
            B[i, k] = B[i, k] * 2
"""
PADDED = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indices_j: T.handle, indptr_k: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_varied(I, (2, n1), (indptr_j, indices_j), padded=True)
    K = T.sp.dense_varied(J, n1, indptr_k)
    N = T.sp.dense_fixed(n1)
    Y = T.sp.match_buffer(y, (N,), "int32")
    with T.sp.iteration([I, J, K], "SSR", "step") as [i, j, k]:
        with T.init():
            Y[j] = 5
        pass
"""
FIVE = """
@T.prim_func
def main(y: T.handle, n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_fixed(5)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I], "S", "outer") as [i]:
        with T.sp.iteration([J], "R", "inner") as [j]:
            Y[i] = Y[i] + 1
"""
FUSED = """
@T.prim_func
def main(y: T.handle, indptr_k: T.handle, n0: T.int64, n1: T.int64, n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    L = T.sp.dense_fixed(n1)
    J = T.sp.dense_fixed(n2)
    K = T.sp.dense_varied(L, n2, indptr_k)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, L, J, K], "SRRS", "step") as [i, l, j, k]:
        Y[i] = Y[i] + 1
"""
FOUR = """
@T.prim_func
def main(x: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(4)
    X = T.sp.match_buffer(x, (I,), "int32")
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I], "S", "step") as [i]:
        Y[i] = X[i]
"""

ALLOCATED = """
@T.prim_func
def main(n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    B = T.sp.alloc_buffer((I,), "int32")
    with T.sp.iteration([I], "S", "step") as [i]:
        with T.init():
            B[i] = 0
        B[i] = 1
"""

PADDED_ROW = """
@T.prim_func
def main(y: T.handle, indices_j: T.handle, n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.compressed_fixed(I, (2, 2), indices_j, "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I, J], "SR", "step") as [i, j]:
        Y[i, i - 1] = Y[i, i - 1] + 1
"""

PARTLY_KNOWN = """
@T.prim_func
def main(y: T.handle, p: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    N = T.sp.dense_fixed(n0)
    P = T.sp.match_buffer(p, (I,), "int32")
    Y = T.sp.match_buffer(y, (N,), "int32")
    with T.sp.iteration([I, J], "SR", "step") as [i, j]:
        Y[P[i]] = Y[P[i]] + 1
"""

MORE_ROWS = """
@T.prim_func
def main(y: T.handle, indptr_k: T.handle, n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    J = T.sp.dense_fixed(3)
    K = T.sp.dense_varied(J, 6, indptr_k, "int32")
    M = T.sp.dense_fixed(n0 * 2)
    Y = T.sp.match_buffer(y, (M,), "int32")
    with T.sp.iteration([M, T.sp.attach(K, M)], "SR", "step") as [m, k]:
        Y[m] = Y[m] + 1
"""
SUMS = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    Y = T.sp.match_buffer(y, (I,), "int32")
    with T.sp.iteration([I, J], "SR", "step") as [i, j]:
        with T.init():
            Y[i] = 0
        Y[i] = Y[i] + 1
"""
COPIED = """
@T.prim_func
def main(y: T.handle, b: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    B = T.sp.match_buffer(b, (I, J), "int32")
    Y = T.sp.match_buffer(y, (I, J), "int32")
    with T.sp.iteration([I, J], "SS", "step") as [i, j]:
        Y[i, j] = B[i, j] + 1
"""
MODULO = """
@T.prim_func
def main(x: T.handle, y: T.handle, n0: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    K = T.sp.dense_fixed(n0)
    L = T.sp.dense_fixed(2)
    X = T.sp.match_buffer(x, (K,), "int32")
    Y = T.sp.match_buffer(y, (K,), "int32")
    B = T.sp.alloc_buffer((L,), "int32")
    with T.sp.iteration([K], "S", "make") as [k]:
        with T.init():
            B[k % 2] = 0
        B[k % 2] = B[k % 2] + X[k]
    with T.sp.iteration([K], "S", "use") as [i]:
        Y[i] = B[i % 2]
"""
OTHER_ROWS = """
@T.prim_func
def main(x: T.handle, y: T.handle, indptr_j: T.handle, n0: T.int64, n1: T.int64,
         n2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, n1, indptr_j)
    K = T.sp.dense_fixed(n2)
    X = T.sp.match_buffer(x, (I, J), "int32")
    Y = T.sp.match_buffer(y, (K,), "int32")
    B = T.sp.alloc_buffer((I, J), "int32")
    with T.sp.iteration([I, J], "SS", "make") as [i, j]:
        B[i, j] = X[i, j]
    with T.sp.iteration([K, I, J], "SRR", "use") as [k, l, m]:
        Y[k] = Y[k] + B[l, m]
"""
OFFSETS_ALONE = """
@T.prim_func
def main(y: T.handle, indptr_j: T.handle, indptr_k: T.handle, offsets: T.handle,
         n0: T.int64, n1: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n0)
    J = T.sp.dense_varied(I, (n1, n1), indptr_j)
    K = T.sp.dense_varied(I, (n1, n1), indptr_k)
    Y = T.sp.match_buffer(y, (I,), "int32")
    B = T.sp.alloc_buffer((I, J, K), "int32", offsets=offsets)
    with T.sp.iteration([I, J, K], "SSS", "unread") as [i, j, k]:
        B[i, j, k] = 1
    with T.sp.iteration([I], "S", "step") as [l]:
        Y[l] = 2
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
