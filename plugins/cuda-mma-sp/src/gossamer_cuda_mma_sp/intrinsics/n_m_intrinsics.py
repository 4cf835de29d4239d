"""Products of a 2:4 matrix and a dense one by `mma.sp`: semantics and implementation of each intrinsic.

The numbers of rows, groups and features may have any values. A block of one warp has a tile of 16 rows and 8
features; what a tile has beyond the matrices is zero.
"""

from __future__ import annotations

from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import ProductIntrinsic
from gossamer_ir.interchange.records import Intrinsic

_HEADER = """
@T.prim_func
def n_m_product(
    a: T.handle, e: T.handle, b: T.handle, c: T.handle, rows: T.int64, groups: T.int64, features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (rows, groups, 2), "DTYPE")
    E = T.match_buffer(e, (rows, groups, 2), "uint8")
    B = T.match_buffer(b, (groups * 4, features), "DTYPE")
    C = T.match_buffer(c, (rows, features), "SUM")
    T.assume(in_range(E, 0, 4))
    T.assume(sorted_segments(E, unique=True))
"""
_SEMANTICS = """
    for i in T.serial(rows):
        for q in T.serial(groups):
            for s in T.serial(2):
                for j in T.serial(features):
                    with T.block("n_m_product"):
                        vi, vq, vs, vj = T.axis.remap("SRRS", [i, q, s, j])
                        C[vi, vj] = C[vi, vj] + T.SUM(A[vi, vq, vs]) * T.SUM(B[vq * 4 + T.int64(E[vi, vq, vs]), vj])
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_IMPLEMENTATION = """
    for i_0 in T.thread_binding((rows + 15) // 16, thread="blockIdx.x"):
        for j_0 in T.thread_binding((features + 7) // 8, thread="blockIdx.y"):
            S = T.alloc_buffer((16, 8), "SUM", scope="fragment")
            for i in T.serial(16):
                for j in T.serial(8):
                    S[i, j] = T.if_then_else(i_0 * 16 + i < rows and j_0 * 8 + j < features, C[i_0 * 16 + i, j_0 * 8 + j], T.SUM(0))
            for q_0 in T.serial((groups + GROUPS - 1) // GROUPS):
                X = T.alloc_buffer((16, GROUPS, 2), "DTYPE", scope="fragment")
                M = T.alloc_buffer((16, GROUPS, 2), "uint8", scope="fragment")
                Y = T.alloc_buffer((DEPTH, 8), "DTYPE", scope="fragment")
                for i_1 in T.serial(16):
                    for q_1 in T.serial(GROUPS):
                        for s_1 in T.serial(2):
                            X[i_1, q_1, s_1] = T.if_then_else(i_0 * 16 + i_1 < rows and q_0 * GROUPS + q_1 < groups, A[i_0 * 16 + i_1, q_0 * GROUPS + q_1, s_1], T.DTYPE(0))
                for i_2 in T.serial(16):
                    for q_2 in T.serial(GROUPS):
                        for s_2 in T.serial(2):
                            M[i_2, q_2, s_2] = T.if_then_else(i_0 * 16 + i_2 < rows and q_0 * GROUPS + q_2 < groups, E[i_0 * 16 + i_2, q_0 * GROUPS + q_2, s_2], T.cast(s_2, "uint8"))
                for p in T.serial(DEPTH):
                    for j_1 in T.serial(8):
                        Y[p, j_1] = T.if_then_else(q_0 * DEPTH + p < groups * 4 and j_0 * 8 + j_1 < features, B[q_0 * DEPTH + p, j_0 * 8 + j_1], T.DTYPE(0))
                for i_3 in T.serial(16):
                    for q_3 in T.serial(GROUPS):
                        for s_3 in T.serial(2):
                            for j_2 in T.serial(8):
                                S[i_3, j_2] = S[i_3, j_2] + T.SUM(X[i_3, q_3, s_3]) * T.SUM(Y[4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4, j_2])
            for i_4 in T.serial(16):
                for j_3 in T.serial(8):
                    if i_0 * 16 + i_4 < rows and j_0 * 8 + j_3 < features:
                        C[i_0 * 16 + i_4, j_0 * 8 + j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def n_m_intrinsic(product: ProductIntrinsic) -> Intrinsic:
    """Return the semantics and the implementation of an intrinsic."""
    sizes = {
        "DTYPE": product.operands,
        "SUM": product.sums,
        "GROUPS": product.depth // 4,
        "DEPTH": product.depth,
    }
    texts = [_HEADER + _SEMANTICS, _HEADER + _IMPLEMENTATION]
    for name, value in sizes.items():
        texts = [text.replace(name, str(value)) for text in texts]
    return Intrinsic(product.name, *texts)
