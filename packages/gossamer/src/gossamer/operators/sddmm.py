"""Sampled dense times dense: out[i, j] = sum over k of X[i, k] * Y[j, k] where A stores (i, j)."""

from __future__ import annotations

from typing import Any

from gossamer.operator_calls.operands.checked_operands import Operands, has_one_kernel
from gossamer.operator_calls.operands.dense_operands import dense_operand, operand_dtype
from gossamer.operator_calls.operands.device_operands import shape_of_array
from gossamer.operator_calls.operands.feature_tiles import add_feature_tiles, dense_feature_tiles
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand, pattern_operand
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_backend import HOST
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import NUMPY_DTYPES
from gossamer_ir.interchange.records import Target

SCRIPT = """\
@T.prim_func
def sddmm(
    x: T.handle,
    y: T.handle,
    out: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    feat_size: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "sddmm", "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    X = T.sp.match_buffer(x, (I, K), "float32")
    Y = T.sp.match_buffer(y, (J_detach, K), "float32")
    Out = T.sp.match_buffer(out, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            Out[i, j] = 0.0
        Out[i, j] = Out[i, j] + X[i, k] * Y[j, k]
"""

PROGRAM = OperatorProgram(
    "sddmm",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.sddmm",
    buffers=("X", "Y", "Out"),
    features="feat_size",
    values=None,
)


def checked_operands(A: Any, X: Array, Y: Array) -> Operands[MatrixOperand]:
    """Return the checked operands of `sddmm`."""
    # Arrays with values that NumPy lacks do not tell their dtype.
    is_encoded = isinstance(A, SparseTensor) and A.value_dtype not in NUMPY_DTYPES
    left_dtype = A.value_dtype if is_encoded else operand_dtype("X", X, allowed=NUMPY_DTYPES)
    matrix = pattern_operand(A, dtype=left_dtype)
    (rows, columns), dtype = matrix.shape[:2], left_dtype or matrix.dtype
    left = dense_operand("X", X, dtype=dtype, shape=(rows, None))
    features = shape_of_array(left)[1]
    right = dense_operand("Y", Y, dtype=dtype, shape=(columns, features), like="'X'")
    return Operands(matrix, {"x": left, "y": right}, "out", (matrix.value_count,), dtype, features)


@operator(PROGRAM, checked_operands)
def sddmm(
    A: Any,
    X: Array,
    Y: Array,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return the elements of X @ Y.T that A (m by n) stores, for dense X (m by K) and Y (n by K).

    The result has one value for each stored element of A, in the order of CSR; explicit zeros and
    duplicates count. The values of A are ignored, and may be bools or integers, too. If X and Y are so wide
    that the rows of Y do not fit the private cache, their products are added tile by tile.
    A and `out` are as for `spmm`; X and Y are NumPy arrays of one dtype (docs/formats.md, "Dtypes of
    values"), those of bfloat16 if A is. For a `Decomposition` the values are in the order of those of the
    tensor that was decomposed.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]]))
    >>> X, Y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0], [9.0, 1.0]])
    >>> gs.sddmm(A, X, Y)
    array([23., 11., 31.])
    """
    checked = checked_operands(A, X, Y)
    if checked.device(out) == HOST and has_one_kernel(checked):
        tiles = dense_feature_tiles(checked, target=target)
        if len(tiles) > 1:
            return add_feature_tiles(
                checked,
                tiles,
                lambda part, sums: sddmm.run(part, out=sums, target=target),
                out=out,
            )
    return sddmm.run(checked, out=out, target=target)
