"""A tensor in the parts that a function makes of its matrix in CSR."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.conversion.destination.recognized_formats import is_format
from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.part import Part
from gossamer_formats.permutation import compose
from gossamer_formats.tensors.convert import convert
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.value_dtypes import NUMPY_DTYPES
from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount


def decomposition_from_csr(
    tensor: SparseTensor, name: str, parts_of: Callable[[SparseTensor], Sequence[Part]]
) -> Decomposition:
    """Return a matrix in parts, made by a function of the matrix in CSR with sorted and unique columns.

    The permutations of the parts are those of the tensor, whatever its format. Raises `FormatError`:
    `format.dimensions`, `format.duplicate`, `format.dtype` for bfloat16.

    >>> import numpy as np
    >>> from scipy.sparse import eye_array
    >>> tensor = SparseTensor(eye_array(2))
    >>> decomposition_from_csr(tensor, "whole", lambda matrix: [Part("all", matrix, np.arange(2))])
    Decomposition(whole, 2 by 2, 2 nonzeros, float64, 36 bytes, 1 part: all)
    """
    require_value_dtype(tensor.value_dtype, allowed=NUMPY_DTYPES)
    if tensor.ndim != 2:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {amount(tensor.ndim, 'dimension')}; expected 2.",
        )
    matrix, permutation = _sorted_csr(tensor)
    parts = parts_of(matrix)
    if permutation is not None:
        parts = [_source_part(part, permutation) for part in parts]
    return Decomposition(name, tensor.shape, tensor.dtype, parts, value_count=tensor.nnz)


def _sorted_csr(tensor: SparseTensor) -> tuple[SparseTensor, Array | None]:
    """Return the matrix in CSR with sorted and unique columns, and the indices of its values in the tensor;
    None if these are the same."""
    indices = indices_of(tensor.description.axes[-1])
    if (
        is_format(tensor.description, "csr")
        and not tensor.is_borrowed
        and indices is not None
        and indices.sorted
        and indices.unique
    ):
        return tensor, None
    return convert(tensor, "csr", duplicates="error")


def _source_part(part: Part, permutation: Array) -> Part:
    """Return a part of a converted tensor as a part of the tensor, where values have other indices."""
    source_permutation = compose(permutation, part.permutation)
    source_permutation.flags.writeable = False
    return part._replace(permutation=source_permutation)
