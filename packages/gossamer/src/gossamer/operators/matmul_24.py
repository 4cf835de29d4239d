"""2:4 matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer.operator_calls.n_m_product_forms import (
    LIBRARY_DTYPES,
    ProductForm,
    choice_here,
    choose_form,
)
from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.dense_operands import dense_operand, output_array
from gossamer.operator_calls.operands.n_m_matrix import (
    GROUP,
    NMMatrix,
    n_m_matrix,
    require_n_m,
    required_array,
)
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer.operators.spmm import spmm
from gossamer.resolve_target import machine_for
from gossamer.targets import DEFAULT_TARGET, is_default_target
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_ir.interchange.records import Decision, Target

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
    A = T.sp.match_buffer(a, (I, G, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, G, J, K], "SRRS", "matmul_24") as [i, g, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, g, j] * B[g * 4 + j, k]
"""

PROGRAM = OperatorProgram(
    "matmul_24",
    SCRIPT,
    parsed="gossamer.parsed_programs.matmul_24",
    buffers=("A", "B", "C"),
    features="feat_size",
)

_DENSE = MemoKey[Array]("the matrix as a dense array for products")
_CSR = MemoKey[SparseTensor]("the matrix in CSR for products")


def operands(A: Any, B: Array) -> Operands[NMMatrix]:
    """Return the checked operands of `matmul_24`."""
    matrix = n_m_matrix(A)
    dense = dense_operand("B", B, dtype=matrix.dtype, shape=(matrix.columns, None))
    rows, features = matrix.rows, int(dense.shape[1])
    padded = _padded_rows(dense, matrix.groups * GROUP)
    return Operands(matrix, {"b": padded}, "c", (rows, features), matrix.dtype, features)


def _decide(dtype: str, sizes: Mapping[str, int]) -> Decision:
    """Return how the product of a tensor is computed on the CPU of this machine."""
    groups = sizes.get("groups")
    return choose_form(
        dtype,
        columns=None if groups is None else GROUP * groups,
        features=sizes.get("feat_size"),
        is_tensor=True,
        machine=machine_for(DEFAULT_TARGET),
    ).decision


@operator(PROGRAM, operands, decide=_decide)
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
    `specialize={"feat_size": 64, "groups": 256}`. `matmul_24.bind` always uses the kernel.

    Raises `FormatError` (`format.n_m`) that names the row and the columns of a group with more
    nonzeros, and `ArgumentError`: `operand.kind`, `operand.dtype`, `operand.shape`, and those of `out`, which
    is as for `spmm`.

    >>> import numpy as np, gossamer as gs
    >>> A = gs.prune(np.array([[1.0, 4.0, 2.0, 3.0], [5.0, 0.0, 0.0, 0.0]]), "2:4")
    >>> gs.matmul_24(A, np.ones((4, 2)))
    array([[7., 7.],
           [5., 5.]])
    """
    if is_default_target(target):
        result = _product_of_library(A, B, out)
        if result is not None:
            return result
    return matmul_24.run(operands(A, B), out=out, target=target)


def _product_of_library(A: Any, B: Array, out: Array | None) -> Array | None:
    """Return the product by NumPy or in CSR; None if the kernel for 2:4 computes it."""
    is_tensor = isinstance(A, SparseTensor)
    matrix = n_m_matrix(A) if is_tensor else required_array(A)
    dtype = str(matrix.dtype)
    if dtype not in LIBRARY_DTYPES:
        return None
    if isinstance(matrix, np.ndarray):
        require_n_m(matrix)
    rows, columns = matrix.shape
    dense = dense_operand("B", B, dtype=dtype, shape=(columns, None))
    # Kernels take arrays of a device, and no library does.
    if not isinstance(dense, np.ndarray):
        return None
    features = dense.shape[1]
    form = choice_here(dtype, columns, features, is_tensor=is_tensor).form
    if form == "kernel":
        return None
    inputs = (dense, *(matrix.memory if isinstance(matrix, NMMatrix) else (matrix,)))
    result, array = output_array(
        out, dtype=SUM_DTYPES[dtype], shape=(rows, features), inputs=inputs
    )
    _multiply(form, A if is_tensor else matrix, dense, out=array)
    return result


def _multiply(form: ProductForm, matrix: Any, dense: Array, *, out: Array) -> None:
    """Store the product of a matrix and a dense one, of which sums have the dtype of `out`. The copy of a
    tensor in another form is kept with it."""
    operand = dense.astype(out.dtype, copy=False)
    if form == "csr":
        stored = _CSR.get(matrix, lambda tensor: _in_csr(tensor, out.dtype))
        spmm(stored, operand, out=out)
        return
    if isinstance(matrix, SparseTensor):
        left = _DENSE.get(matrix, lambda tensor: tensor.toarray().astype(out.dtype, copy=False))
    else:
        left = matrix.astype(out.dtype, copy=False)
    np.matmul(left, operand, out=out)


def _in_csr(tensor: SparseTensor, dtype: np.dtype[Any]) -> SparseTensor:
    from scipy.sparse import csr_array

    return SparseTensor(csr_array(tensor.toarray().astype(dtype, copy=False)))


def _padded_rows(dense: Array, rows: int) -> Array:
    """Return an array with as many rows; those that are added are zeros."""
    if rows == dense.shape[0]:
        return dense
    padded = np.zeros((rows, dense.shape[1]), dense.dtype)
    padded[: dense.shape[0]] = dense
    return padded
