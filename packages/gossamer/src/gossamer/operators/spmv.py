"""Sparse matrix times vector: y[i] = sum over j of A[i, j] * x[j]."""

from __future__ import annotations

from typing import Any

from gossamer.operators.operands import Operands, dense_operand, sparse_operand
from gossamer.operators.operator import operator
from gossamer.operators.program import Program
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

PROGRAM = Program("spmv", SCRIPT, buffers=("A", "X", "Y"))


def operands(A: Any, x: Array) -> Operands:  # noqa: N803
    """Return the checked operands of `spmv`."""
    matrix = sparse_operand(A)
    vector = dense_operand("x", x, dtype=matrix.dtype, shape=(matrix.columns,))
    return Operands(matrix, {"x": vector}, "y", (matrix.rows,), matrix.dtype)


@operator(PROGRAM, operands)
def spmv(
    A: Any,  # noqa: N803
    x: Array,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return A @ x (m) for a sparse matrix A (m by n) and a vector x (n).

    Operands, `out` and errors are as for `spmm`.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> gs.spmv(A, np.array([1.0, 3.0]))
    array([6., 0.])
    """
    return spmv.run(operands(A, x), out=out, target=target)
