"""Products of dense blocks and a dense matrix: the semantics of intrinsics of several targets.

An intrinsic adds the products of all blocks of a block row. The numbers of blocks, of their rows and columns,
and of features may have any values.
"""

from __future__ import annotations

from gossamer_ir.core.dtypes import ROUNDED_OPERANDS, SUM_DTYPES, stored_operand_dtype
from gossamer_machine.intrinsics.float8_operands import FLOAT8_OPERANDS, float8_text

_HEADER = """
@T.prim_func
def block_product(
    a: T.handle, b: T.handle, c: T.handle,
    blocks: T.int64, rows: T.int64, columns: T.int64, features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (blocks, rows, columns), "DTYPE")
    B = T.match_buffer(b, (blocks, columns, features), "DTYPE")
    C = T.match_buffer(c, (rows, features), "SUM")
"""
_SEMANTICS = """
    for q in T.serial(blocks):
        for p in T.serial(columns):
            for i in T.serial(rows):
                for j in T.serial(features):
                    with T.block("block_product"):
                        vq, vp, vi, vj = T.axis.remap("RRSS", [q, p, i, j])
                        C[vi, vj] = C[vi, vj] + PRODUCT
"""


def block_product_function(dtype: str, body: str) -> str:
    """Return the script of a function with the parameters of such an intrinsic, for operands of a dtype.

    >>> block_product_function("float16", "    pass").splitlines()[-2].strip()
    'C = T.match_buffer(c, (rows, features), "float32")'
    """
    stored = stored_operand_dtype(dtype)
    return _HEADER.replace("DTYPE", stored).replace("SUM", SUM_DTYPES[stored]) + body


def factor_text(element: str, dtype: str) -> str:
    """Return the script of a factor of a product of operands: an element in the dtype of the sums.

    >>> factor_text("A[i]", "float16"), factor_text("A[i]", "tfloat32"), factor_text("A[i]", "float32")
    ('T.float32(A[i])', 'T.tf32(A[i])', 'A[i]')
    """
    if dtype in ROUNDED_OPERANDS:
        return f"T.tf32({element})"
    if dtype in FLOAT8_OPERANDS:
        return float8_text(element, dtype)
    sums = SUM_DTYPES[dtype]
    return element if sums == dtype else f"T.{sums}({element})"


def block_product_semantics(dtype: str) -> str:
    """Return the script of the semantics for operands of a dtype, or of a precision of `ROUNDED_OPERANDS`.
    Products are added in a dtype of `SUM_DTYPES`.

    >>> block_product_semantics("int8").splitlines()[-1].strip()
    'C[vi, vj] = C[vi, vj] + T.int32(A[vq, vi, vp]) * T.int32(B[vq, vp, vj])'
    """
    factors = [factor_text(element, dtype) for element in ("A[vq, vi, vp]", "B[vq, vp, vj]")]
    return block_product_function(dtype, _SEMANTICS.replace("PRODUCT", " * ".join(factors)))
