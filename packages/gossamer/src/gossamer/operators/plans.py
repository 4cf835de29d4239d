"""Call plans of tensors: repeated calls of an operator on one tensor only pass its dense arrays."""

from __future__ import annotations

from typing import TypeAlias
from weakref import WeakKeyDictionary

from gossamer.operators.kernels import kernel_for
from gossamer.operators.operands import Operands, Sparse, output
from gossamer.operators.operator import Operator
from gossamer_backend import CallPlan
from gossamer_formats import Array, SparseTensor
from gossamer_ir.interchange.records import Target

CHECKED = ("indptr", "indices")
"""The parameters for arrays whose contents were checked when the tensor was made."""

_Plans: TypeAlias = dict[tuple[str, int | None, str | Target | None], CallPlan]
_plans: WeakKeyDictionary[SparseTensor, _Plans] = WeakKeyDictionary()


def plan_of(
    tensor: SparseTensor,
    operator: Operator,
    *,
    features: int | None = None,
    target: str | Target | None = None,
) -> CallPlan | None:
    """Return the plan of an earlier call on this tensor, or None."""
    found = _plans.get(tensor)
    return None if found is None else found.get((operator.name, features, target))


def call(
    operator: Operator,
    operands: Operands,
    *,
    out: Array | None = None,
    target: str | Target | None = None,
) -> Array:
    """Return the result of an operator on checked operands, in `out` if it is given.

    For a tensor, the plan of the call is stored.
    """
    shape, dtype, matrix = operands.shape, operands.dtype, operands.matrix
    result, array = output(out, dtype=dtype, shape=shape, inputs=operands.inputs)
    if array.size == 0 or matrix.nnz == 0 or operands.features == 0:
        array[...] = 0
        return result
    kernel = kernel_for(operator, operands.variant(), stats=matrix.stats(), target=target).kernel
    changing = {**operands.dense, operands.output: array}
    values = {**structure(operator, matrix), **changing}
    if matrix.tensor is None:
        kernel.bind(verified=CHECKED, check=False, **values)()
        return result
    plan = kernel.prepare(*changing, verified=CHECKED, **values)
    _plans.setdefault(matrix.tensor, {})[operator.name, operands.features, target] = plan
    plan(*changing.values())
    return result


def structure(operator: Operator, matrix: Sparse) -> dict[str, Array]:
    """Return the arrays of the matrix that an operator reads, by parameter."""
    indptr, indices, data = matrix.arrays
    arrays = {"indptr": indptr, "indices": indices}
    return {**arrays, operator.values: data} if operator.values else arrays
