"""Prepared kernels of tensors: an operator on the same tensor only has to pass its dense arrays."""

from __future__ import annotations

from typing import TypeAlias
from weakref import WeakKeyDictionary

from gossamer.kernels import kernel_for
from gossamer.operators.operands import Sparse
from gossamer.operators.operator import Operator
from gossamer_backend import PreparedKernel
from gossamer_formats import Array, SparseTensor
from gossamer_ir.contracts import Target

CHECKED = ("indptr", "indices")
"""The arrays whose contents were checked when the tensor was made."""

_Plans: TypeAlias = dict[tuple[str, int | None, str | Target | None], PreparedKernel]
_plans: WeakKeyDictionary[SparseTensor, _Plans] = WeakKeyDictionary()


def plan_of(
    tensor: SparseTensor,
    operator: Operator,
    *,
    features: int | None = None,
    target: str | Target | None = None,
) -> PreparedKernel | None:
    """The plan that an earlier call on this tensor made."""
    found = _plans.get(tensor)
    return None if found is None else found.get((operator.name, features, target))


def run(
    operator: Operator,
    matrix: Sparse,
    dense: dict[str, Array],
    *,
    features: int | None = None,
    target: str | Target | None = None,
) -> None:
    """Runs an operator on checked operands; `dense` are the dense arrays by parameter, in order.

    For a tensor it leaves a plan behind.
    """
    variant, stats = matrix.variant(features), matrix.stats()
    kernel = kernel_for(operator, variant, stats=stats, target=target).kernel
    indptr, indices, data = matrix.arrays
    values = {"a": data, "indptr": indptr, "indices": indices, **dense}
    if matrix.tensor is None:
        kernel.bind(verified=CHECKED, **values)()
        return
    plan = kernel.prepare(*dense, verified=CHECKED, **values)
    _plans.setdefault(matrix.tensor, {})[operator.name, features, target] = plan
    plan(*dense.values())
