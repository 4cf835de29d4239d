"""The order of rows in which products find more rows of the dense operand in the caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossamer.targets import DEFAULT_TARGET
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.nodes import Module

if TYPE_CHECKING:
    from gossamer_tune import MatrixProperties, Workload

_ORDER = MemoKey[Array]("the order of rows")


def row_order(matrix: SparseTensor) -> Array:
    """Return the rows of a square matrix in CSR in an order of communities, found once for each tensor.

    >>> from scipy.sparse import block_array, eye_array
    >>> from gossamer_formats import from_scipy
    >>> ones = eye_array(2)
    >>> row_order(from_scipy(block_array([[ones, ones], [ones, ones]], format="csr"))).tolist()
    [0, 2, 1, 3]
    """
    return _ORDER.get(matrix, _found_order)


def _found_order(matrix: SparseTensor) -> Array:
    from gossamer_tune import community_order

    rows, columns = matrix.shape
    arrays = matrix.arrays
    return community_order((rows, columns), arrays["indptr"], arrays["indices"], compile=_compile)


def _compile(module: Module) -> Any:
    from gossamer.build_kernels import build_kernel

    return build_kernel(module, target=DEFAULT_TARGET).kernel


def properties_for(matrix: SparseTensor, *workloads: Workload) -> MatrixProperties:
    """Return the properties of a matrix in CSR, with those of another order of the rows if one of the
    workloads may gain from it."""
    from gossamer_tune import may_gain_from_order, properties_of, with_row_order

    rows, columns = matrix.shape
    indptr, indices = matrix.arrays["indptr"], matrix.arrays["indices"]
    properties = properties_of((rows, columns), indptr, indices)
    if any(may_gain_from_order(properties, workload) for workload in workloads):
        properties = with_row_order(properties, indptr, indices, row_order(matrix))
    return properties
