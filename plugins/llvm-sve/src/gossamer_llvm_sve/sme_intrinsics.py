"""Products of blocks whose sums stay in the matrix registers of SME: semantics and implementation of each.

An intrinsic adds the products of blocks with a dense operand, all that belong to one block row. The number of
blocks, their rows and columns, and the number of features may have any values. The sums of a tile of rows and
features are in three registers while all blocks are multiplied. The rows of a block are stored in the fourth
register, and its columns are read from there, as operands of outer products.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import vscale_factor
from gossamer_ir.interchange.records import Intrinsic
from gossamer_machine.intrinsics.block_products import (
    block_product_function,
    block_product_semantics,
)

_IMPLEMENTATION = """
    for i_0 in T.serial((rows + ROWS - 1) // ROWS):
        for j_0 in T.serial((features + FEATURES - 1) // FEATURES):
            S = T.alloc_buffer((3, ROWS, LANES), "float32", scope="fragment")
            X = T.alloc_buffer((ROWS, COLUMNS), "DTYPE", scope="fragment")
            for r in T.serial(T.min(rows, i_0 * ROWS + ROWS) - i_0 * ROWS):
                for u in T.unroll(3):
                    for l in T.vectorized(LANES):
                        if j_0 * FEATURES + u * LANES + l < features:
                            S[u, r, l] = C[i_0 * ROWS + r, j_0 * FEATURES + u * LANES + l]
            for q in T.serial(blocks):
                for p_0 in T.serial((columns + COLUMNS - 1) // COLUMNS):
                    for r_1 in T.serial(T.min(rows, i_0 * ROWS + ROWS) - i_0 * ROWS):
                        for l_1 in T.vectorized(COLUMNS):
                            X[r_1, l_1] = T.if_then_else(p_0 * COLUMNS + l_1 < columns, A[q, i_0 * ROWS + r_1, p_0 * COLUMNS + l_1], T.DTYPE(0.0))
UPDATES
            for r_4 in T.serial(T.min(rows, i_0 * ROWS + ROWS) - i_0 * ROWS):
                for u_3 in T.unroll(3):
                    for l_4 in T.vectorized(LANES):
                        if j_0 * FEATURES + u_3 * LANES + l_4 < features:
                            C[i_0 * ROWS + r_4, j_0 * FEATURES + u_3 * LANES + l_4] = S[u_3, r_4, l_4]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_UPDATES = {
    "float32": """
                    for p_1 in T.serial(T.min(columns, p_0 * COLUMNS + COLUMNS) - p_0 * COLUMNS):
                        for r_2 in T.serial(ROWS):
                            for u_1 in T.unroll(3):
                                for l_2 in T.vectorized(LANES):
                                    if j_0 * FEATURES + u_1 * LANES + l_2 < features:
                                        S[u_1, r_2, l_2] = S[u_1, r_2, l_2] + X[r_2, p_1] * B[q, p_0 * COLUMNS + p_1, j_0 * FEATURES + u_1 * LANES + l_2]
""",  # noqa: E501
    # One instruction adds the products of two columns; the last column of an odd number has no other one.
    "float16": """
                    for p_1 in T.serial(T.min(columns // 2, p_0 * LANES + LANES) - p_0 * LANES):
                        for r_2 in T.serial(ROWS):
                            for u_1 in T.unroll(3):
                                for l_2 in T.vectorized(LANES):
                                    if j_0 * FEATURES + u_1 * LANES + l_2 < features:
                                        S[u_1, r_2, l_2] = S[u_1, r_2, l_2] + (T.cast(X[r_2, 2 * p_1], "float32") * T.cast(B[q, p_0 * COLUMNS + 2 * p_1, j_0 * FEATURES + u_1 * LANES + l_2], "float32") + T.cast(X[r_2, 2 * p_1 + 1], "float32") * T.cast(B[q, p_0 * COLUMNS + (2 * p_1 + 1), j_0 * FEATURES + u_1 * LANES + l_2], "float32"))
                if columns // 2 * 2 < columns:
                    for r_3 in T.serial(ROWS):
                        for u_2 in T.unroll(3):
                            for l_3 in T.vectorized(LANES):
                                if j_0 * FEATURES + u_2 * LANES + l_3 < features:
                                    S[u_2, r_3, l_3] = S[u_2, r_3, l_3] + T.cast(X[r_3, 2 * (columns // 2 % LANES)], "float32") * T.cast(B[q, columns // 2 * 2, j_0 * FEATURES + u_2 * LANES + l_3], "float32")
""",  # noqa: E501
}
SME_BLOCK_PRODUCTS = tuple((dtype, f"sme_block_product_{dtype}") for dtype in _UPDATES)
"""The names of the intrinsics, by the dtype of their operands."""


def sme_block_product(dtype: str) -> Intrinsic:
    """Return the intrinsic for blocks and a dense operand of a dtype. Results are float32.

    >>> sme_block_product("float16").name
    'sme_block_product_float16'
    """
    body = _with_sizes(_IMPLEMENTATION.replace("UPDATES", _UPDATES[dtype].strip("\n")), dtype)
    return Intrinsic(
        dict(SME_BLOCK_PRODUCTS)[dtype],
        block_product_semantics(dtype),
        block_product_function(dtype, body),
    )


def _with_sizes(text: str, dtype: str) -> str:
    """Return a text with the sizes of registers: 4 rows of a vector of float32 for each unit of vscale, of
    blocks as many rows of a vector of their dtype."""
    lanes = vscale_factor("float32")
    sizes = {"ROWS": lanes, "LANES": lanes, "FEATURES": 3 * lanes, "COLUMNS": vscale_factor(dtype)}
    for name, count in sizes.items():
        text = text.replace(name, f"({count} * T.vscale())")
    return text.replace("DTYPE", dtype)


def sme_intrinsics() -> tuple[Intrinsic, ...]:
    """Return the intrinsics for all dtypes."""
    return tuple(sme_block_product(dtype) for dtype, _ in SME_BLOCK_PRODUCTS)
