"""Programs for documentation and tests."""

from __future__ import annotations

from textwrap import dedent, indent

from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module

SCALE = parse_module("""
@T.prim_func
def scale(x: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
""")
"""Y = 2 X, loop stage."""

GATHER = parse_module("""
@T.prim_func
def gather(x: T.handle, p: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m,), "float32")
    P = T.match_buffer(p, (n,), "int64")
    Y = T.match_buffer(y, (n,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
""")
"""y = x[p], loop stage."""

GATHER_TILES = parse_module("""
@T.prim_func
def gather_tiles(x: T.handle, p: T.handle, y: T.handle, m: T.int64, tiles: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m,), "float32")
    P = T.match_buffer(p, (tiles, 4), "int32")
    Y = T.match_buffer(y, (tiles, 4), "float32")
    T.assume(in_range(P, 0, 16))
    for t in T.serial(tiles):
        for i in T.serial(4):
            with T.block("gather"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = X[vt * 16 + T.int64(P[vt, vi])]
""")
"""Elements of tiles of 16 elements, four of each tile; loop stage."""

SPMV = parse_module("""
@T.prim_func
def spmv(
    indptr: T.handle, indices: T.handle, a: T.handle, x: T.handle, y: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64,
):
    T.func_attr({"sparse_tir_level": 0})
    J_indptr = T.match_buffer(indptr, (m + 1,), "int32")
    J_indices = T.match_buffer(indices, (nnz,), "int32")
    A = T.match_buffer(a, (nnz,), "float32")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(monotone(J_indptr))
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(in_range(J_indices, 0, n))
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("csrmv"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[T.int64(J_indptr[vi]) + vj] * X[T.int64(J_indices[T.int64(J_indptr[vi]) + vj])]
""")  # noqa: E501  (the script has no line breaks inside an expression)
"""Y = A X with A in CSR, loop stage."""

SPMM = parse_module("""
@T.prim_func
def spmm(
    indptr: T.handle, indices: T.handle, a: T.handle, b: T.handle, c: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64, K: T.int64,
):
    T.func_attr({"sparse_tir_level": 0})
    J_indptr = T.match_buffer(indptr, (m + 1,), "int32")
    J_indices = T.match_buffer(indices, (nnz,), "int32")
    A = T.match_buffer(a, (nnz,), "float32")
    B = T.match_buffer(b, (n, K), "float32")
    C = T.match_buffer(c, (m, K), "float32")
    T.assume(monotone(J_indptr))
    T.assume(in_range(J_indptr, 0, nnz + 1))
    T.assume(in_range(J_indices, 0, n))
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            for k in T.serial(K):
                with T.block("csrmm"):
                    vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                    with T.init():
                        C[vi, vk] = 0.0
                    C[vi, vk] = C[vi, vk] + A[T.int64(J_indptr[vi]) + vj] * B[T.int64(J_indices[T.int64(J_indptr[vi]) + vj]), vk]
""")  # noqa: E501  (the script has no line breaks inside an expression)
"""C = A B with A in CSR, loop stage."""

SPMM_COORDINATE = parse_module("""
@T.prim_func
def spmm(
    indptr: T.handle, indices: T.handle, a: T.handle, b: T.handle, c: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64, width: T.int64,
):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(width)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
""")
"""C = A B with A in CSR, coordinate stage."""

SPMM_POSITION = parse_module("""
@T.prim_func
def spmm(
    indptr: T.handle, indices: T.handle, a: T.handle, b: T.handle, c: T.handle,
    m: T.int64, n: T.int64, nnz: T.int64, width: T.int64,
):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices))
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(width)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            for k in T.serial(width):
                with T.block("csrmm"):
                    vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                    with T.init():
                        C[vi, vk] = 0.0
                    C[vi, vk] = C[vi, vk] + A[vi, vj] * B[T.int64(J_indices[vi, vj]), vk]
""")
"""C = A B with A in CSR, position stage."""

VECTOR_SUM = parse_module("""
@T.prim_func
def total(a: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (n,), "float32")
    Y = T.match_buffer(y, (1,), "float32")
    for i in T.serial(n):
        with T.block("total"):
            vi = T.axis.reduce(n, i)
            Y[0] = Y[0] + A[vi]
""")
"""Y = Y + the sum of A, loop stage."""

ROW_SUM = parse_module("""
@T.prim_func
def row_sum(indptr: T.handle, a: T.handle, y: T.handle, m: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    indptr_data = T.match_buffer(indptr, (m + 1,), "int64")
    A = T.match_buffer(a, (nnz,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(monotone(indptr_data))
    T.assume(in_range(indptr_data, 0, nnz + 1))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
""")
"""Sums over ragged rows, loop stage."""

MATMUL = parse_module("""
@T.prim_func
def matmul(
    a: T.handle, b: T.handle, c: T.handle, m: T.int64, n: T.int64, k: T.int64,
):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (n, k), "float32")
    C = T.match_buffer(c, (m, k), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            for l in T.serial(k):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    with T.init():
                        C[vi, vl] = 0.0
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
""")
"""C = A B, all dense, loop stage."""

STAGED = parse_module("""
@T.prim_func
def staged(x: T.handle, y: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, 8), "float32")
    Y = T.match_buffer(y, (m, 8), "float32")
    X_shared = T.decl_buffer((m, 8), "float32", scope="shared")
    for i in T.serial(m):
        for j in T.serial(8):
            with T.block("fetch"):
                vi, vj = T.axis.remap("SS", [i, j])
                X_shared[vi, vj] = X[vi, vj]
        for k in T.serial(8):
            with T.block("scale"):
                wi, wk = T.axis.remap("SS", [i, k])
                Y[wi, wk] = X_shared[wi, wk] * 2.0
""")
"""Y = 2 X with an intermediate buffer in shared memory, loop stage."""

BIASED = parse_module("""
@T.prim_func
def biased(a: T.handle, b: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    S = T.decl_buffer((m,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + A[vi, vj]
    for k in T.serial(m):
        with T.block("bias"):
            vk = T.axis.spatial(m, k)
            Y[vk] = S[vk] + B[vk]
""")
"""Row sums plus a bias per row, loop stage."""

NESTED = parse_module("""
@T.prim_func
def nested(x: T.handle, y: T.handle, m: T.int64, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (m, n), "float32")
    Y = T.match_buffer(y, (m, n), "float32")
    for i in T.serial(m):
        with T.block("rows"):
            vi = T.axis.spatial(m, i)
            for j in T.serial(n):
                with T.block("scale"):
                    ui = T.axis.spatial(m, vi)
                    uj = T.axis.spatial(n, j)
                    Y[ui, uj] = X[ui, uj] * 2.0
""")
"""Y = 2 X with a loop inside a block, loop stage."""

PADDED = parse_module("""
@T.prim_func
def padded(x: T.handle, y: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (12,), "float32")
    Y = T.match_buffer(y, (16,), "float32")
    for i in T.serial(16):
        with T.block("pad"):
            vi = T.axis.spatial(16, i)
            Y[vi] = T.if_then_else(vi >= 2 and vi < 14, X[vi - 2], 0.0)
""")
"""Y = X padded with two zeros on each side, loop stage."""
WINDOWS = parse_module("""
@T.prim_func
def windows(x: T.handle, y: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n + 2,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        W = T.alloc_buffer((n + 2,), "float32")
        for j in T.serial(3):
            with T.block("twice"):
                vj = T.axis.spatial(n + 2, i + j)
                W[vj] = X[vj] * 2.0
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            Y[vi] = W[vi] + W[vi + 1] + W[vi + 2]
""")
"""Sums over sliding windows, each of which is computed again, loop stage."""

_DOT_4 = """
@T.prim_func
def dot_4(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (4,), "float32")
    B = T.match_buffer(b, (4,), "float32")
    C = T.match_buffer(c, (1,), "float32")
"""
DOT_4 = Intrinsic(
    name="dot_4",
    semantics=_DOT_4
    + """
    for p in T.serial(4):
        with T.block("dot"):
            vp = T.axis.reduce(4, p)
            C[0] = C[0] + A[vp] * B[vp]
""",
    implementation=_DOT_4
    + """
    C[0] = C[0] + (A[0] * B[0] + A[1] * B[1] + (A[2] * B[2] + A[3] * B[3]))
""",
)
"""C = C + A B for vectors of four elements, with the implementation summing pairwise."""

ROW_SUMS = parse_module("""
@T.prim_func
def row_sums(a: T.handle, y: T.handle, p: T.handle, q: T.handle,
             m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int64")
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
""")
"""The sum of each row of a CSR matrix, coordinate stage."""

_HEADER = """
@T.prim_func
def f(x: T.handle, y: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int64")
"""


def program(body: str) -> Module:
    """Return a loop-stage function with these statements over X, Y (float32) and P (int64), of length n."""
    return parse_module(_HEADER + indent(dedent(body).strip("\n"), "    ") + "\n")
