"""Products of dense blocks and a dense matrix by `mma`: semantics and implementation of each intrinsic.

An intrinsic adds the products of all blocks of a block row. The numbers of blocks, of their rows and columns,
and of features may have any values. The sums of a tile of 16 rows and 8 features are in fragments while all
blocks are multiplied; what a tile has beyond a block is zero.
"""

from __future__ import annotations

from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import ProductIntrinsic
from gossamer_ir.interchange.records import Intrinsic
from gossamer_machine.intrinsics.block_products import (
    block_product_function,
    block_product_semantics,
    factor_text,
)

_IMPLEMENTATION = """
    for i_0 in T.serial((rows + 15) // 16):
        for j_0 in T.serial((features + 7) // 8):
            S = T.alloc_buffer((16, 8), "SUM", scope="fragment")
            for i in T.serial(16):
                for j in T.serial(8):
                    S[i, j] = T.if_then_else(i_0 * 16 + i < rows and j_0 * 8 + j < features, C[i_0 * 16 + i, j_0 * 8 + j], T.SUM(0))
            for q in T.serial(blocks):
                for p_0 in T.serial((columns + DEPTH - 1) // DEPTH):
                    X = T.alloc_buffer((16, DEPTH), "DTYPE", scope="fragment")
                    Y = T.alloc_buffer((DEPTH, 8), "DTYPE", scope="fragment")
                    for i_1 in T.serial(16):
                        for p in T.serial(DEPTH):
                            X[i_1, p] = T.if_then_else(i_0 * 16 + i_1 < rows and p_0 * DEPTH + p < columns, A[q, i_0 * 16 + i_1, p_0 * DEPTH + p], T.DTYPE(0))
                    for p_1 in T.serial(DEPTH):
                        for j_1 in T.serial(8):
                            Y[p_1, j_1] = T.if_then_else(p_0 * DEPTH + p_1 < columns and j_0 * 8 + j_1 < features, B[q, p_0 * DEPTH + p_1, j_0 * 8 + j_1], T.DTYPE(0))
                    for i_2 in T.serial(16):
                        for p_2 in T.serial(DEPTH):
                            for j_2 in T.serial(8):
                                S[i_2, j_2] = S[i_2, j_2] + FACTOR_X * FACTOR_Y
            for i_3 in T.serial(16):
                for j_3 in T.serial(8):
                    if i_0 * 16 + i_3 < rows and j_0 * 8 + j_3 < features:
                        C[i_0 * 16 + i_3, j_0 * 8 + j_3] = S[i_3, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def block_intrinsic(product: ProductIntrinsic) -> Intrinsic:
    """Return the semantics and the implementation of an intrinsic."""
    dtype, body = product.operands, _IMPLEMENTATION
    texts = {
        "FACTOR_X": factor_text("X[i_2, p_2]", dtype),
        "FACTOR_Y": factor_text("Y[p_2, j_2]", dtype),
        "DTYPE": product.stored_dtype,
        "SUM": product.sums,
        "DEPTH": str(product.depth),
    }
    for name, value in texts.items():
        body = body.replace(name, value)
    return Intrinsic(
        product.name, block_product_semantics(dtype), block_product_function(dtype, body)
    )
