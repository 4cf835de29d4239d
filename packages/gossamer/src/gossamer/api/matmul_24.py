"""2:4 matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from gossamer.api.compile import compile
from gossamer.api.products_24 import (
    LIBRARY_DTYPES,
    Form,
    choice_here,
    is_on_this_cpu,
    multiply_by_library,
)
from gossamer.operator_calls.operands.dense_operands import output_array
from gossamer.operator_calls.operands.two_of_four import Compressed24, compress_24, required_24
from gossamer.targets import DEFAULT_TARGET
from gossamer_backend import Kernel
from gossamer_backend.internal_api import compiling
from gossamer_formats import Array, SparseTensor
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

    On a target with sparse tensor cores they multiply. On the CPU of this machine (the default target), the
    product of NumPy, or that of `spmm`, is used where the kernel for 2:4 is slower: it is for int8, and for
    targets that are named with options. `explain("matmul_24", target=...)` says what is chosen and why, for
    operands of other dtypes with `dtypes={"A": "float16", "B": "float16"}` and for sizes with
    `specialize={"feat_size": 64, "groups": 256}`.

    Raises `FormatError` (`format.two_of_four`) that names the row and the columns of a group with more
    nonzeros, and `ArgumentError`: `operand.kind`, `operand.dtype`, `operand.shape`, and those of `out`, which
    is as for `spmm`.

    >>> import gossamer as gs
    >>> A = gs.prune(np.array([[1.0, 4.0, 2.0, 3.0], [5.0, 0.0, 0.0, 0.0]]), "2:4")
    >>> matmul_24(A, np.ones((4, 2)))
    array([[7., 7.],
           [5., 5.]])
    """
    matrix = _matrix(A, target)
    rows, dtype = matrix.shape[0], _dtype_of(matrix)
    dense = _required_dense(B, matrix)
    result, array = output_array(
        out,
        dtype=SUM_DTYPES[dtype],
        shape=(rows, dense.shape[1]),
        inputs=(B, *_arrays(matrix)),
    )
    # Kernels are not called for empty arrays, which have no address.
    if not array.size or not dense.size:
        array[...] = 0
        return result
    form = _form(A, matrix, dense.shape[1], target)
    if form != "structured":
        multiply_by_library(form, A if isinstance(A, SparseTensor) else matrix, dense, out=array)
        return result
    assert isinstance(matrix, Compressed24), "only compressed matrices have a kernel"
    kernel = _kernel(dtype, dense.shape[1], target)
    kernel(
        a=matrix.values,
        indices=matrix.indices,
        b=_padded_rows(dense, matrix.groups * 4),
        c=array,
        m=rows,
        groups=matrix.groups,
    )
    return result


def _matrix(A: Any, target: str | Target | None) -> Compressed24 | Array:
    """Return the matrix in 2:4, or as a dense array, which was checked, if its product will be dense."""
    if isinstance(A, SparseTensor) or not is_on_this_cpu(target):
        return compress_24(A, dtypes=VALUE_DTYPES)
    dense = required_24(A, dtypes=VALUE_DTYPES)
    is_of_library = dense.dtype.name in LIBRARY_DTYPES
    return dense if is_of_library else compress_24(dense, dtypes=VALUE_DTYPES)


def _dtype_of(matrix: Compressed24 | Array) -> str:
    return matrix.dtype if isinstance(matrix, Compressed24) else str(matrix.dtype.name)


def _arrays(matrix: Compressed24 | Array) -> tuple[Array, ...]:
    return matrix.arrays if isinstance(matrix, Compressed24) else (matrix,)


def _form(A: Any, matrix: Compressed24 | Array, features: int, target: str | Target | None) -> Form:
    """Return how the product is computed: on the CPU of this machine in the fastest form, on any other target
    by its kernel for 2:4."""
    if not is_on_this_cpu(target):
        return "structured"
    columns, is_tensor = matrix.shape[1], isinstance(A, SparseTensor)
    return choice_here(_dtype_of(matrix), columns, features, is_tensor=is_tensor).form


def _required_dense(B: Any, matrix: Compressed24 | Array) -> Array:
    if not isinstance(B, np.ndarray) or isinstance(B, np.ma.MaskedArray):
        raise ArgumentError(
            "operand.kind", f"'B' has the type '{type(B).__name__}'; expected a NumPy array."
        )
    if B.dtype != value_array_dtype(_dtype_of(matrix)):
        raise ArgumentError(
            "operand.dtype",
            f"'B' has the dtype {B.dtype}, the matrix {_dtype_of(matrix)}; expected one dtype of "
            f"{either(VALUE_DTYPES)}.",
            hint=f"Elements of {_dtype_of(matrix)} are stored as {value_array_dtype(_dtype_of(matrix))}.",
        )
    if B.ndim != 2 or B.shape[0] != matrix.shape[1]:
        raise ArgumentError(
            "operand.shape",
            f"'B' has the shape {B.shape}; expected ({matrix.shape[1]}, any).",
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
