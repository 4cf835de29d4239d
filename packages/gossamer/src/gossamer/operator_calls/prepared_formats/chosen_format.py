"""A matrix, or a pattern, in the format that the model of costs has chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from gossamer_formats import Array, Conversion, Decomposition, SparseTensor, convert
from gossamer_formats.internal_api import MemoKey, replace_values, with_fill
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements

if TYPE_CHECKING:
    from gossamer_tune import Estimate, FormatChoice

PreparedMatrix: TypeAlias = SparseTensor | Decomposition
"""A matrix in one format, or in parts."""

ConvertedPattern: TypeAlias = Conversion | Decomposition
"""A pattern in another format, with the permutations of values."""

T = TypeVar("T")

CHOICE: MemoKey[FormatChoice] = MemoKey("the choice of a format")
"""The choice that was made for a pattern, by `prepare` or because of repeated products."""


def in_format(matrix: SparseTensor, estimate: Estimate) -> PreparedMatrix:
    """Return a matrix in CSR in the format of an estimate, in one storage or in parts as the format declares.

    Rows are in an order of communities if the estimate says so. A matrix that stays in CSR becomes a tensor
    of its own with the same arrays, since the given one may have other choices.
    """
    stored = _convert(matrix, estimate, SparseTensor.asformat)
    return SparseTensor.from_checked(matrix.storage) if stored is matrix else stored


def pattern_in_format(matrix: SparseTensor, estimate: Estimate) -> ConvertedPattern:
    """Return the pattern of a matrix in CSR without duplicates in the format of an estimate, for
    `matrix_with_values`."""
    # Zeros would be left out of blocks, and other values may not be zero there.
    ones = replace_values(matrix, np.ones(matrix.nnz, matrix.dtype))
    return _convert(ones, estimate, convert)


def matrix_with_values(converted: ConvertedPattern, values: Array) -> PreparedMatrix:
    """Return the matrix of a pattern in another format, with the values of a matrix in CSR.

    >>> from scipy.sparse import csr_array
    >>> from gossamer_formats import convert
    >>> tensor = SparseTensor(csr_array(np.array([[1.0, 2.0], [0.0, 3.0]])))
    >>> matrix_with_values(convert(tensor, "csc"), np.array([4.0, 5.0, 6.0])).toarray()
    array([[4., 5.],
           [0., 6.]])
    """
    if isinstance(converted, Decomposition):
        return converted.with_values(values)
    assert converted.permutation is not None, "a pattern without duplicates has a permutation"
    return replace_values(converted.tensor, with_fill(values, 0)[converted.permutation])


def _convert(
    matrix: SparseTensor, estimate: Estimate, convert: Callable[..., T]
) -> T | Decomposition:
    """Return a matrix in parts, or what a function returns that converts to one format."""
    # Most programs convert no matrix: these modules need the parser.
    from gossamer_formats import decompose, format_named
    from gossamer_formats.internal_api import COMPOSABLE_FORMATS, ProductStorage

    name, parameters = estimate.format, dict[str, Any](estimate.parameters)
    if name in COMPOSABLE_FORMATS.names():
        return decompose(matrix, name, **parameters)
    if estimate.is_ordered:
        from gossamer.operator_calls.prepared_formats.row_order import row_order

        return convert(matrix, name, order=row_order(matrix), **parameters)
    stored = format_named(name).adapter(ProductStorage)
    if stored is not None and stored.parts is not None:
        return decompose(matrix, stored.parts(matrix.shape, parameters))
    return convert(matrix, name, **parameters)


def has_added_zeros(converted: ConvertedPattern, matrix: SparseTensor) -> bool:
    """Return whether a format fills slots with zeros that take part in products. Zero times infinity is not
    zero.

    >>> from scipy.sparse import eye_array
    >>> from gossamer_formats import convert
    >>> matrix = SparseTensor(eye_array(4))
    >>> blocks = [convert(matrix, "bsr", block_rows=rows, block_columns=1) for rows in (1, 2)]
    >>> [has_added_zeros(pattern, matrix) for pattern in blocks]
    [False, True]
    """
    tensors = (
        [part.tensor for part in converted.parts]
        if isinstance(converted, Decomposition)
        else [converted.tensor]
    )
    is_filled = not all(stores_only_elements(tensor.description) for tensor in tensors)
    return is_filled and sum(tensor.nnz for tensor in tensors) != matrix.nnz
