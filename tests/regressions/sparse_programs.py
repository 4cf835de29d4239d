"""The programs of `test_sparse_schedules`."""

from __future__ import annotations

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
FIBERS = """
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
