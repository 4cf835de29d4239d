"""The order of rows in which products find more rows of the dense operand in the caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer_formats import Array, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.nodes import Module

if TYPE_CHECKING:
    from gossamer_tune import MatrixProperties, Workload

_ORDER = MemoKey[Array]("the order of rows")
_PROPERTIES: MemoKey[MatrixProperties] = MemoKey("the properties")
_ORDERED_PROPERTIES: MemoKey[MatrixProperties] = MemoKey("the properties with an order of rows")


def row_order(matrix: SparseTensor) -> Array:
    """Return the rows of a square matrix in CSR in an order of communities, found once for each pattern.

    >>> from scipy.sparse import block_array, eye_array
    >>> from gossamer_formats import from_scipy
    >>> ones = eye_array(2)
    >>> row_order(from_scipy(block_array([[ones, ones], [ones, ones]], format="csr"))).tolist()
    [0, 2, 1, 3]
    """
    return _ORDER.get(matrix.pattern, lambda _pattern: _found_order(matrix))


def _found_order(matrix: SparseTensor) -> Array:
    from gossamer_formats import community_order

    rows, columns = matrix.shape
    arrays = matrix.arrays
    return community_order((rows, columns), arrays["indptr"], arrays["indices"], compile=_compile)


def _compile(module: Module) -> Any:
    from gossamer.compilation.build_kernels import KERNELS

    return KERNELS.build_module(module, target=DEFAULT_TARGET).kernel


def properties_for(matrix: SparseTensor, *workloads: Workload) -> MatrixProperties:
    """Return the properties of a matrix in CSR, with those of another order of the rows if one of the
    workloads may gain from it. Both are computed once for each pattern."""
    from gossamer_tune import may_gain_from_order

    properties = _PROPERTIES.get(matrix.pattern, lambda _pattern: _properties(matrix))
    if any(may_gain_from_order(properties, workload) for workload in workloads):
        return _ORDERED_PROPERTIES.get(
            matrix.pattern, lambda _pattern: _ordered_properties(matrix, properties)
        )
    return properties


def _properties(matrix: SparseTensor) -> MatrixProperties:
    from gossamer_tune import properties_of

    rows, columns = matrix.shape
    return properties_of((rows, columns), matrix.arrays["indptr"], matrix.arrays["indices"])


def _ordered_properties(matrix: SparseTensor, properties: MatrixProperties) -> MatrixProperties:
    from gossamer_tune import with_row_order

    arrays = matrix.arrays
    return with_row_order(properties, arrays["indptr"], arrays["indices"], row_order(matrix))
