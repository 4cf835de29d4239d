"""Sparse matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.operands.csr_operands import Operands, dense_operand
from gossamer.operator_calls.operands.matrices import sparse_operand
from gossamer.operator_calls.operands.stored_operands import (
    StoredOperands,
    checked_storage,
    stored_part,
)
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.parts import PartOperands, product_of_parts
from gossamer.operator_calls.program import OperatorProgram
from gossamer.operator_calls.scaled_products import is_scaled, scaled_product
from gossamer.operators import spmm_bsr
from gossamer.operators.spmm_bsr import BlockOperands, is_in_blocks, operands_in_blocks
from gossamer.operators.spmv import spmv
from gossamer_formats import Array, Decomposition
from gossamer_ir.interchange.records import Target

SCRIPT = """\
@T.prim_func
def csrmm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    feat_size: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "csrmm", "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""

PROGRAM = OperatorProgram(
    "spmm", SCRIPT, buffers=("A", "B", "C"), features="feat_size", sums_rows=True
)


def operands(A: Any, B: Array) -> Operands | StoredOperands | BlockOperands:  # noqa: N803
    """Return the checked operands of `spmm`."""
    return operands_in_blocks(A, B) if is_in_blocks(A) else sparse_operands(A, B)


def sparse_operands(A: Any, B: Array) -> Operands | StoredOperands:  # noqa: N803
    """Return the checked operands of `spmm` for a tensor in its format or a matrix that is converted to
    CSR."""
    part = stored_part(PROGRAM, A)
    if part is not None:
        rows, columns = A.shape
        dense = dense_operand("B", B, dtype=A.dtype.name, shape=(columns, None))
        features = dense.shape[1]
        storage = checked_storage(A)
        shape = (rows, features)
        return StoredOperands(storage, part, {"b": dense}, "c", shape, A.dtype.name, features)
    matrix = sparse_operand(A)
    dense = dense_operand("B", B, dtype=matrix.dtype, shape=(matrix.columns, None))
    features = dense.shape[1]
    return Operands(matrix, {"b": dense}, "c", (matrix.rows, features), matrix.dtype, features)


def part_operands(A: Decomposition, B: Array) -> PartOperands:  # noqa: N803
    """Return the checked operands of `spmm` for a matrix in parts."""
    dtype = A.dtype.name
    dense = dense_operand("B", B, dtype=dtype, shape=(A.shape[1], None))
    features = dense.shape[1]
    return PartOperands(A, {"b": dense}, "c", (A.shape[0], features), dtype, features)


@operator(PROGRAM, operands, variants={BlockOperands: spmm_bsr.PROGRAM})
def spmm(
    A: Any,  # noqa: N803
    B: Array,  # noqa: N803
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return alpha * A @ B + beta * out (m by K) for a sparse matrix A (m by n) and a dense B (n by K).

    A is a `SparseTensor`, a `Decomposition`, or any SciPy sparse matrix or array, B a NumPy array; both are
    float32 or both float64. A tensor that is not in CSR is converted to it once, unless a rule for schedules
    makes that superfluous; a decomposition is multiplied part by part. A SciPy matrix is checked at each
    call, must not be changed during it, and is converted to CSR unless it is in blocks. Columns of A may be
    unsorted; duplicates are added. `out` is C-contiguous, writable, of the result's dtype and shape, and
    does not overlap an input. It is read if beta is not 0. A vector B (n) gives a vector (m). Raises
    `ArgumentError`, `FormatError`; nothing was written then.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> gs.spmm(A, np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))
    array([[2., 4., 6.],
           [0., 0., 0.]])
    """
    if isinstance(B, np.ndarray) and B.ndim == 1:
        if not is_scaled(alpha, beta):
            # Without factors, a repeated call has a plan.
            return spmv(A, B, out=out, target=target)
        return spmv(A, B, alpha=alpha, beta=beta, out=out, target=target)
    if isinstance(A, Decomposition):
        stored = part_operands(A, B)
        return product_of_parts(PROGRAM, stored, alpha=alpha, beta=beta, out=out, target=target)
    if is_scaled(alpha, beta):
        checked = sparse_operands(A, B)
        return scaled_product(PROGRAM, checked, alpha=alpha, beta=beta, out=out, target=target)
    return spmm.run(operands(A, B), out=out, target=target)
