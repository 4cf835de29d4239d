"""A matrix in the format that the model of costs has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gossamer_formats import Decomposition, SparseTensor
from gossamer_formats.internal_api import MemoKey
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements

if TYPE_CHECKING:
    from gossamer_tune import Estimate, FormatChoice

PreparedMatrix: TypeAlias = SparseTensor | Decomposition
"""A matrix in one format, or in parts."""

CHOICE: MemoKey[FormatChoice] = MemoKey("the choice of a format")
"""The choice that was made for a matrix, by `prepare` or because of repeated products."""


def in_format(matrix: SparseTensor, estimate: Estimate) -> PreparedMatrix:
    """Return a matrix in CSR in the format of an estimate, in one storage or in parts as the format declares.

    Rows are in an order of communities if the estimate says so. A matrix that stays in CSR becomes a tensor
    of its own with the same arrays, since the given one may have other choices.
    """
    # Most programs convert no matrix: these modules need the parser.
    from gossamer_formats import decompose, format_named
    from gossamer_formats.internal_api import COMPOSABLE_FORMATS

    name, parameters = estimate.format, dict[str, Any](estimate.parameters)
    if name in COMPOSABLE_FORMATS.names():
        return decompose(matrix, name, **parameters)
    if estimate.is_ordered:
        from gossamer.operator_calls.row_order import row_order

        return matrix.asformat(name, order=row_order(matrix), **parameters)
    parts = format_named(name).parts_for_products
    if parts is not None:
        return decompose(matrix, parts(matrix.shape, parameters))
    stored = matrix.asformat(name, **parameters)
    return SparseTensor.from_checked(matrix.storage) if stored is matrix else stored


def has_added_zeros(stored: PreparedMatrix, matrix: SparseTensor) -> bool:
    """Return whether a format fills slots with zeros that take part in products. Zero times infinity is not
    zero.

    >>> from scipy.sparse import eye_array
    >>> matrix = SparseTensor(eye_array(4))
    >>> [has_added_zeros(matrix.asformat("bsr", block_rows=rows, block_columns=1), matrix) for rows in (1, 2)]
    [False, True]
    """
    tensors = (
        [stored] if isinstance(stored, SparseTensor) else [part.tensor for part in stored.parts]
    )
    is_filled = not all(stores_only_elements(tensor.description) for tensor in tensors)
    return is_filled and sum(tensor.nnz for tensor in tensors) != matrix.nnz
