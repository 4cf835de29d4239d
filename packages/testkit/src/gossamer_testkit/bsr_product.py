"""The product of a matrix in BSR and a dense matrix, for operands of several dtypes."""

from __future__ import annotations

from gossamer_ir.core.dtypes import SUM_DTYPES, stored_operand_dtype
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine.intrinsics.block_products import factor_text

_SCRIPT = """
@T.prim_func
def bsrmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
          mb: T.int64, nb: T.int64, nnzb: T.int64, bh: T.int64, bw: T.int64, feat: T.int64) -> None:
    IO = T.sp.dense_fixed(mb)
    JO = T.sp.compressed_varied(IO, (nb, nnzb), (indptr, indices), "int32")
    JO_detach = T.sp.dense_fixed(nb)
    II = T.sp.dense_fixed(bh)
    JI = T.sp.dense_fixed(bw)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "OPERAND")
    B = T.sp.match_buffer(b, (JO_detach, JI, K), "OPERAND")
    C = T.sp.match_buffer(c, (IO, II, K), "RESULT")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "bsrmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = ZERO
        C[io, ii, k] = C[io, ii, k] + LEFT * RIGHT
"""
_LEFT, _RIGHT = "A[io, jo, ii, ji]", "B[jo, ji, k]"


def bsr_product_script(dtype: str = "float32") -> str:
    """Return the script of the product at the coordinate stage, as text.

    Its sizes are those of the blocks (`bh` by `bw`), of the matrix of blocks (`mb` by `nb`, `nnzb` of them
    stored), and the number `feat` of columns of the dense matrix. Operands of float16 and bfloat16 are
    multiplied in float32, and have results of float32; those of int8 in int32. Operands of
    "tfloat32" are float32 that are rounded by `T.tf32`. Other results have the dtype of the operands.

    >>> print(bsr_product_script("float16").splitlines()[-1].strip())
    C[io, ii, k] = C[io, ii, k] + T.float32(A[io, jo, ii, ji]) * T.float32(B[jo, ji, k])
    """
    stored = stored_operand_dtype(dtype)
    result = SUM_DTYPES[stored]
    left, right = (factor_text(side, dtype) for side in (_LEFT, _RIGHT))
    text = _SCRIPT.replace("OPERAND", stored).replace("RESULT", result)
    text = text.replace("ZERO", "0" if result.startswith("int") else "0.0")
    return text.replace("LEFT", left).replace("RIGHT", right)


def bsr_product(dtype: str = "float32", **sizes: int) -> Module:
    """Return the program of the product, in which some sizes may be constants.

    >>> [param.name for param in bsr_product("float64", bh=4, bw=4).functions[0].params[-3:]]
    ['nb', 'nnzb', 'feat']
    """
    return specialize(parse_module(bsr_product_script(dtype)), sizes)
