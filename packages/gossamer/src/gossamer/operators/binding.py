"""Operators bound to their arrays, for those who call one again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.kernels import kernel_for
from gossamer.operators import operator_named
from gossamer.operators.operands import dense_operand, output, sparse_operand
from gossamer.operators.plans import CHECKED
from gossamer_backend import BoundKernel
from gossamer_formats import Array
from gossamer_ir.contracts import Target
from gossamer_ir.errors import ArgumentError


def bind(
    op: str,
    A: Any,  # noqa: N803
    dense: Array,
    *,
    out: Array,
    target: str | Target | None = None,
) -> BoundKernel:
    """The operator `spmm` or `spmv` on these arrays, checked once: calling it only runs the kernel.

    Operands, `out` and errors as for the operator itself; `dense` must be C-contiguous, as it is read
    again at each call. The arrays may get other values between calls; those of a SciPy matrix must
    keep its structure.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> x, y = np.array([1.0, 3.0]), np.empty(2)
    >>> step = gs.bind("spmv", A, x, out=y)
    >>> step()
    >>> y
    array([6., 0.])
    >>> x[:] = 10
    >>> step()
    >>> y
    array([20.,  0.])
    """
    operator, matrix = operator_named(op), sparse_operand(A)
    shape: tuple[int | None, ...] = (
        (matrix.columns, None) if operator.features else (matrix.columns,)
    )
    operand = dense_operand("dense", dense, dtype=matrix.dtype, shape=shape)
    _require_itself(operand, dense)
    features = operand.shape[1] if operator.features else None
    result_shape = (matrix.rows, *operand.shape[1:])
    inputs = (operand, *matrix.arrays)
    _, result = output(out, dtype=matrix.dtype, shape=result_shape, inputs=inputs)
    variant, stats = matrix.variant(features), matrix.stats()
    kernel = kernel_for(operator, variant, stats=stats, target=target).kernel
    indptr, indices, data = matrix.arrays
    names = ("b", "c") if operator.features else ("x", "y")
    arrays = dict(zip(names, (operand, result), strict=True))
    return kernel.bind(a=data, indptr=indptr, indices=indices, verified=CHECKED, **arrays)


def _require_itself(operand: Array, dense: Array) -> None:
    """A copy would not see what the caller writes later."""
    if operand is not dense and not np.shares_memory(operand, dense):
        raise ArgumentError(
            "operand.contiguous",
            f"dense has the strides {dense.strides}; expected a C-contiguous array.",
            hint="Copy it with numpy.ascontiguousarray, and write to the copy.",
        )
