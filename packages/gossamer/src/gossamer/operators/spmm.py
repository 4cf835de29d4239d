"""Sparse matrix times dense matrix: C[i, k] = sum over j of A[i, j] * B[j, k]."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operator_calls.binding.scaled_products import is_scaled
from gossamer.operator_calls.operands.checked_operands import Operands
from gossamer.operator_calls.operands.matrix_operand import MatrixOperand
from gossamer.operator_calls.operands.product_operands import product_operands
from gossamer.operator_calls.operator import operator
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_formats import Array
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
    "spmm",
    SCRIPT,
    parsed="gossamer.operator_calls.parsed_programs.spmm",
    buffers=("A", "B", "C"),
    features="feat_size",
    sums_rows=True,
)


def checked_operands(
    A: Any, B: Array, *, target: str | Target | None = None
) -> Operands[MatrixOperand]:
    """Return the checked operands of `spmm`."""
    return product_operands(PROGRAM, A, B, name="B", target=target)


@operator(PROGRAM, checked_operands)
def spmm(
    A: Any,
    B: Array,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return alpha * A @ B + beta * out (m by K) for a sparse matrix A (m by n) and a dense B (n by K).

    **Parameters**

    * `A`: a `SparseTensor`, a `Decomposition`, or a sparse matrix or array of SciPy. Its columns may be
      unsorted; duplicates are added.
    * `B`: a NumPy array of the dtype of A (docs/formats.md, "Dtypes of values"). A vector (n) gives a vector
      (m). A and B may also be on a device (docs/backends.md, "Operators on a device").
    * `alpha`, `beta`: factors of the product and of `out`.
    * `out`: the array for the result, of its dtype and shape, C-contiguous and writable. It must not overlap
      an input, and is read only if beta is not 0.
    * `target`: the target to compile for; the CPU of this process if there is none.

    **Formats**

    * A tensor in CSR is converted to a faster format once its calls have paid for the conversion
      (docs/formats.md, "Repeated products").
    * A tensor in another format is multiplied in this format if a rule has a schedule for it, and otherwise
      converted to CSR at its first call.
    * A decomposition is multiplied part by part, on a GPU in one launch.
    * A SciPy matrix is checked at each call, and must not be changed during it. It is converted to CSR unless
      it is in BSR.

    **Raises**, before anything is written

    * `ArgumentError`: the operands, a factor or `out` have a wrong type, dtype or shape.
    * `FormatError`: the arrays of a SciPy matrix are not a valid matrix.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> gs.spmm(A, np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]]))
    array([[2., 4., 6.],
           [0., 0., 0.]])
    """
    if isinstance(B, np.ndarray) and B.ndim == 1:
        # Imported late: most products are with matrices.
        from gossamer.operators.spmv import spmv

        if not is_scaled(alpha, beta):
            # Without factors, a repeated call has a plan.
            return spmv(A, B, out=out, target=target)
        return spmv(A, B, alpha=alpha, beta=beta, out=out, target=target)
    return spmm.run(
        checked_operands(A, B, target=target), alpha=alpha, beta=beta, out=out, target=target
    )
