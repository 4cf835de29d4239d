"""2:4 matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gossamer.api.compile import compile
from gossamer.operator_calls.operands.dense_operands import output_array
from gossamer.operator_calls.operands.two_of_four import Compressed24, compress_24
from gossamer.targets import DEFAULT_TARGET
from gossamer_backend import Kernel
from gossamer_backend.internal_api import compiling
from gossamer_formats import Array
from gossamer_formats.internal_api import VALUE_DTYPES, value_array_dtype
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.support.message_texts import either
from gossamer_ir.support.typed_calls import typed

SCRIPT = """\
@T.prim_func
def matmul_24(
    a: T.handle,
    indices: T.handle,
    b: T.handle,
    c: T.handle,
    m: T.int64,
    groups: T.int64,
    feat_size: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "matmul_24", "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed(groups, parent=I)
    J = T.sp.compressed_fixed(G, (4, 2), indices, "uint8", padded=False)
    J_detach = T.sp.dense_fixed(groups * 4)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, G, J), "OPERAND")
    B = T.sp.match_buffer(b, (J_detach, K), "OPERAND")
    C = T.sp.match_buffer(c, (I, K), "SUM")
    with T.sp.iteration([I, G, J, K], "SRRS", "matmul_24") as [i, g, j, k]:
        with T.init():
            C[i, k] = T.SUM(0)
        C[i, k] = C[i, k] + T.cast(A[i, g, j], "SUM") * T.cast(B[g * 4 + j, k], "SUM")
"""


def program_24(dtype: str) -> str:
    """Return the program for operands of a dtype.

    >>> [line.strip() for line in program_24("int8").splitlines() if "match_buffer" in line][2]
    'C = T.sp.match_buffer(c, (I, K), "int32")'
    """
    text = SCRIPT.replace("OPERAND", dtype).replace("SUM", SUM_DTYPES[dtype])
    # Operands that have the dtype of the sums need no cast.
    if SUM_DTYPES[dtype] == dtype:
        return text.replace(f'T.cast(A[i, g, j], "{dtype}")', "A[i, g, j]").replace(
            f'T.cast(B[g * 4 + j, k], "{dtype}")', "B[g * 4 + j, k]"
        )
    return text


@typed
def matmul_24(
    A: Any, B: Array, *, out: Array | None = None, target: str | Target | None = None
) -> Array:
    """Return A @ B (m by k) for a 2:4 matrix A (m by n) and a dense matrix B (n by k).

    Of each four consecutive columns, a row of A has at most two nonzeros. A is a dense array, or a
    `SparseTensor` or SciPy matrix in any format; a tensor of `prune(A, "2:4")` is compressed once, all others
    at each call. Nothing is dropped: `prune` is a call of its own. A and B are both float16, float32,
    float64 or int8, or A is a tensor of bfloat16 and B has the bits of bfloat16, as uint16. Products of
    float16 and bfloat16 are added in float32, and those of int8 in int32, which wraps; that is the dtype of
    the result. A zero of A is a factor of some products, and of others not: where B is infinite or NaN, the
    result is unspecified.

    On a target with sparse tensor cores they multiply; `explain("matmul_24", target=...)` says what was
    chosen, for operands of other dtypes with `dtypes={"A": "float16", "B": "float16"}`.

    Raises `FormatError` (`format.two_of_four`) that names the row and the columns of a group with more
    nonzeros, and `ArgumentError`: `operand.kind`, `operand.dtype`, `operand.shape`, and those of `out`, which
    is as for `spmm`.

    >>> import gossamer as gs
    >>> A = gs.prune(np.array([[1.0, 4.0, 2.0, 3.0], [5.0, 0.0, 0.0, 0.0]]), "2:4")
    >>> matmul_24(A, np.ones((4, 2)))
    array([[7., 7.],
           [5., 5.]])
    """
    compressed = compress_24(A, dtypes=VALUE_DTYPES)
    dense = _required_dense(B, compressed)
    result, array = output_array(
        out,
        dtype=SUM_DTYPES[compressed.dtype],
        shape=(compressed.rows, dense.shape[1]),
        inputs=(B, *compressed.arrays),
    )
    # Kernels are not called for empty arrays, which have no address.
    if not array.size or not dense.size:
        array[...] = 0
        return result
    kernel = _kernel(compressed.dtype, dense.shape[1], target)
    kernel(
        a=compressed.values,
        indices=compressed.indices,
        b=_padded_rows(dense, compressed.groups * 4),
        c=array,
        m=compressed.rows,
        groups=compressed.groups,
    )
    return result


def _required_dense(B: Any, compressed: Compressed24) -> Array:
    if not isinstance(B, np.ndarray) or isinstance(B, np.ma.MaskedArray):
        raise ArgumentError(
            "operand.kind", f"'B' has the type '{type(B).__name__}'; expected a NumPy array."
        )
    if B.dtype != value_array_dtype(compressed.dtype):
        raise ArgumentError(
            "operand.dtype",
            f"'B' has the dtype {B.dtype}, the matrix {compressed.dtype}; expected one dtype of "
            f"{either(VALUE_DTYPES)}.",
            hint=f"Elements of {compressed.dtype} are stored as {value_array_dtype(compressed.dtype)}.",
        )
    if B.ndim != 2 or B.shape[0] != compressed.columns:
        raise ArgumentError(
            "operand.shape",
            f"'B' has the shape {B.shape}; expected ({compressed.columns}, any).",
        )
    return B


def _padded_rows(dense: Array, rows: int) -> Array:
    """Return a C-contiguous array with as many rows; those that are added are zeros."""
    if rows == dense.shape[0]:
        return np.ascontiguousarray(dense)
    padded = np.zeros((rows, dense.shape[1]), dense.dtype)
    padded[: dense.shape[0]] = dense
    return padded


@lru_cache(maxsize=256)
def _kernel(dtype: str, features: int, target: str | Target | None) -> Kernel:
    with compiling:
        return compile(
            program_24(dtype),
            target=DEFAULT_TARGET if target is None else target,
            specialize={"feat_size": features},
        )
