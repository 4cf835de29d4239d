"""Products of dense blocks and a dense matrix by `mma`: semantics and implementation of each intrinsic.

An intrinsic adds the products of all blocks of a block row. The numbers of blocks, of their rows and columns,
and of features may have any values. The sums of a tile of 16 rows and 8 features are in fragments while all
blocks are multiplied; what a tile has beyond a block is zero.
"""

from __future__ import annotations

from gossamer_cuda_mma_sp.sparsity.matrix_instructions import matrix_instruction
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.interchange.records import Intrinsic

BLOCK_PRODUCTS = (
    ("float16", "mma_block_product_float16"),
    ("bfloat16", "mma_block_product_bfloat16"),
)
"""The names of the intrinsics by the dtype of the operands. Sums are float32."""

_DEPTH = 16
_HEADER = """
@T.prim_func
def block_product(
    a: T.handle, b: T.handle, c: T.handle,
    blocks: T.int64, rows: T.int64, columns: T.int64, features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (blocks, rows, columns), "DTYPE")
    B = T.match_buffer(b, (blocks, columns, features), "DTYPE")
    C = T.match_buffer(c, (rows, features), "float32")
"""
_SEMANTICS = """
    for q in T.serial(blocks):
        for p in T.serial(columns):
            for i in T.serial(rows):
                for j in T.serial(features):
                    with T.block("block_product"):
                        vq, vp, vi, vj = T.axis.remap("RRSS", [q, p, i, j])
                        C[vi, vj] = C[vi, vj] + T.float32(A[vq, vi, vp]) * T.float32(B[vq, vp, vj])
"""
_IMPLEMENTATION = """
    for i_0 in T.serial((rows + 15) // 16):
        for j_0 in T.serial((features + 7) // 8):
            S = T.alloc_buffer((16, 8), "float32", scope="fragment")
            for i in T.serial(16):
                for j in T.serial(8):
                    S[i, j] = T.if_then_else(i_0 * 16 + i < rows and j_0 * 8 + j < features, C[i_0 * 16 + i, j_0 * 8 + j], T.float32(0))
            for q in T.serial(blocks):
                for p_0 in T.serial((columns + 15) // 16):
                    X = T.alloc_buffer((16, 16), "DTYPE", scope="fragment")
                    Y = T.alloc_buffer((16, 8), "DTYPE", scope="fragment")
                    for i_1 in T.serial(16):
                        for p in T.serial(16):
                            X[i_1, p] = T.if_then_else(i_0 * 16 + i_1 < rows and p_0 * 16 + p < columns, A[q, i_0 * 16 + i_1, p_0 * 16 + p], T.DTYPE(0))
                    for p_1 in T.serial(16):
                        for j_1 in T.serial(8):
                            Y[p_1, j_1] = T.if_then_else(p_0 * 16 + p_1 < columns and j_0 * 8 + j_1 < features, B[q, p_0 * 16 + p_1, j_0 * 8 + j_1], T.DTYPE(0))
                    for i_2 in T.serial(16):
                        for p_2 in T.serial(16):
                            for j_2 in T.serial(8):
                                S[i_2, j_2] = S[i_2, j_2] + T.float32(X[i_2, p_2]) * T.float32(Y[p_2, j_2])
            for i_3 in T.serial(16):
                for j_3 in T.serial(8):
                    if i_0 * 16 + i_3 < rows and j_0 * 8 + j_3 < features:
                        C[i_0 * 16 + i_3, j_0 * 8 + j_3] = S[i_3, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def block_intrinsic(dtype: str) -> Intrinsic:
    """Return the intrinsic for operands of a dtype.

    >>> block_intrinsic("float16").name
    'mma_block_product_float16'
    """
    texts = ((_HEADER + text).replace("DTYPE", dtype) for text in (_SEMANTICS, _IMPLEMENTATION))
    return Intrinsic(dict(BLOCK_PRODUCTS)[dtype], *texts)


def block_intrinsics() -> tuple[Intrinsic, ...]:
    """Return the intrinsics for all dtypes."""
    return tuple(block_intrinsic(dtype) for dtype, _ in BLOCK_PRODUCTS)


def block_products_of(gpu: Gpu) -> tuple[tuple[str, str], ...]:
    """Return the intrinsics whose instruction a GPU has, by the dtype of the operands."""
    return tuple(
        (dtype, name)
        for dtype, name in BLOCK_PRODUCTS
        if matrix_instruction(dtype, dtype, "float32", depth=_DEPTH, is_sparse=False, gpu=gpu)
    )
