"""The product of a matrix in strips of rows (SR-BCRS), with a column in each slot, and a dense matrix."""

from __future__ import annotations

from gossamer_ir.core.dtypes import SUM_DTYPES, stored_operand_dtype
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine.intrinsics.block_products import factor_text

_SCRIPT = """
@T.prim_func
def srbcrsmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
            strips: T.int64, n: T.int64, longest: T.int64, groups: T.int64,
            height: T.int64, width: T.int64, feat: T.int64) -> None:
    IO = T.sp.dense_fixed(strips)
    JO = T.sp.dense_varied(IO, (longest, groups), indptr, "int32")
    II = T.sp.dense_fixed(height)
    JI = T.sp.compressed_fixed(JO, (n, width), indices, "int32", sorted=False, unique=False, padded=False)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat)
    A = T.sp.match_buffer(a, (IO, JO, II, JI), "OPERAND")
    B = T.sp.match_buffer(b, (N, K), "OPERAND")
    C = T.sp.match_buffer(c, (IO, II, K), "RESULT")
    with T.sp.iteration([IO, JO, II, JI, K], "SRSRS", "srbcrsmm") as [io, jo, ii, ji, k]:
        with T.init():
            C[io, ii, k] = ZERO
        C[io, ii, k] = C[io, ii, k] + LEFT * RIGHT
"""


def sr_bcrs_product(dtype: str = "float32", **sizes: int) -> Module:
    """Return the program of the product, in which some sizes may be constants.

    Slots without an element have the value 0 and any column. The dtypes are those of `bsr_product_script`.
    The sizes are the rows and the columns of a group (`height`, `width`), the strips and their groups
    (`strips`, `groups`, at most `longest` of a strip), the rows of the dense matrix (`n`) and its columns
    (`feat`).

    >>> [param.name for param in sr_bcrs_product("float16", height=8, width=16).functions[0].params[-3:]]
    ['longest', 'groups', 'feat']
    """
    stored = stored_operand_dtype(dtype)
    result = SUM_DTYPES[stored]
    left = factor_text("A[io, jo, ii, ji]", dtype)
    right = factor_text("B[ji, k]", dtype)
    text = _SCRIPT.replace("OPERAND", stored).replace("RESULT", result)
    text = text.replace("ZERO", "0" if result.startswith("int") else "0.0")
    text = text.replace("LEFT", left).replace("RIGHT", right)
    return specialize(parse_module(text), sizes)
