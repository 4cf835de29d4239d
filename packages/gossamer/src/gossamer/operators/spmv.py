"""Sparse matrix times vector: y[i] = sum over j of A[i, j] * x[j]."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand
from gossamer.operator_calls.operands.product_operands import product_operands
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_formats import Array
from gossamer_ir.interchange.records import Target

SCRIPT = """\
@T.prim_func
def csrmv(
    a: T.handle,
    x: T.handle,
    y: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2, "global_symbol": "csrmv", "tir.noalias": True})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32", sorted=False, unique=False)
    J_detach = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (J_detach,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "csrmv") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
"""

PROGRAM = OperatorProgram(
    "spmv",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.spmv",
    buffers=("A", "X", "Y"),
    sums_rows=True,
)


def checked_operands(
    A: Any, x: Array, *, target: str | Target | None = None
) -> Operands[MatrixOperand]:
    """Return the checked operands of `spmv`."""
    return product_operands(PROGRAM, A, x, name="x", target=target)


@operator(PROGRAM, checked_operands)
def spmv(
    A: Any,
    x: Array,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return alpha * A @ x + beta * out (m) for a sparse matrix A (m by n) and a vector x (n).

    Operands, `out` and errors are as for `spmm`. A matrix x (n by 1) gives a matrix (m by 1).

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> gs.spmv(A, np.array([1.0, 3.0]))
    array([6., 0.])
    """
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] == 1:
        # A view, so that the result is written into the output of the caller.
        column = None if out is None else _column(out)
        product = spmv(A, x[:, 0], alpha=alpha, beta=beta, out=column, target=target)
        return product.reshape(-1, 1) if out is None else out
    return spmv.run(
        checked_operands(A, x, target=target), alpha=alpha, beta=beta, out=out, target=target
    )


def _column(out: Any) -> Any:
    """Return the column of an output (m by 1) as a vector; anything else as it is."""
    return out[:, 0] if isinstance(out, np.ndarray) and out.shape[1:] == (1,) else out
