"""Operators bound to their arrays, for repeated calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.operators import operands_of, operator_named
from gossamer.operators.blocks import bound_to_blocks, is_in_blocks, operands_in_blocks
from gossamer.operators.kernels import kernel_for
from gossamer.operators.operands import output
from gossamer.operators.plans import CHECKED, structure
from gossamer_backend import BoundCall
from gossamer_formats import Array
from gossamer_ir.core.typed_calls import typed
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


@typed
def bind(
    op: str,
    A: Any,  # noqa: N803
    *dense: Array | float | None,
    out: Array,
    target: str | Target | None = None,
    check: bool = False,
) -> BoundCall:
    """Return the operator of a name bound to these arrays, which are checked once: a call only runs the
    kernel.

    Operands (also numbers), `out` and errors are as for the operator itself; dense operands must be
    C-contiguous, as they are read again at each call. The values of arrays may change between calls, but not
    the structure of a SciPy matrix. A `SparseTensor`'s index arrays were checked when it was made; with
    `check` they are checked again, and `ArgumentError` has the position of the first violation.

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
    operator = operator_named(op)
    if op == "spmm" and is_in_blocks(A) and len(dense) == 1:
        return _bind_blocks(A, *dense, out=out, target=target, check=check)
    found = operands_of(op, A, *dense)
    for operand, given in zip(found.dense.values(), dense, strict=False):
        if isinstance(given, np.ndarray):
            _require_itself(operand, given)
    _, result = output(out, dtype=found.dtype, shape=found.shape, inputs=found.inputs)
    stats = found.matrix.stats()
    kernel = kernel_for(operator, found.variant(), stats=stats, target=target).kernel
    arrays = {**structure(operator, found.matrix), **found.dense, found.output: result}
    return kernel.bind(verified=CHECKED, check=check, **arrays)


def _bind_blocks(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    *,
    out: Array,
    target: str | Target | None,
    check: bool,
) -> BoundCall:
    """Bind `spmm` to a SciPy matrix in blocks, without conversion to CSR."""
    found = operands_in_blocks(A, B)
    _require_itself(found.dense, B)
    _, result = output(out, dtype=found.dtype, shape=found.shape, inputs=found.inputs)
    return bound_to_blocks(found, result, target=target, check=check)


def _require_itself(operand: Array, dense: Array) -> None:
    """Raise unless the operands can be used without a copy, which later writes of the caller would not
    reach."""
    if operand is not dense and not np.shares_memory(operand, dense):
        raise ArgumentError(
            "operand.contiguous",
            f"A dense operand has the strides {dense.strides}; expected a C-contiguous array.",
            hint="Copy it with numpy.ascontiguousarray, and write to the copy.",
        )
