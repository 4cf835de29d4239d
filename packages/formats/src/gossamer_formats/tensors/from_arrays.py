"""Makes tensors from arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gossamer_formats.checks.shapes import required_shape
from gossamer_formats.conversion.destination.conversion_destination import describe
from gossamer_formats.memory.ownership import owned_array
from gossamer_formats.tensors.dlpack_arrays import numpy_array
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


@typed
def from_arrays(
    format: str | FormatDescription, shape: Sequence[int], **arrays: Any
) -> SparseTensor:
    """Return a tensor made from arrays, which are passed by their names in the format's description.

    Arrays are copied. They are those of NumPy, or of a library that exports them by DLPack, on the CPU. They
    have one dimension: indices of int32 or int64, values of float32, float64, float16 or int8.
    For bfloat16 the format is a description with that dtype, such as `csr("bfloat16")`, and values are
    uint16. Sizes that do not follow from the shape and the arrays, such as the size of blocks, are passed as
    integers. The tensor's description records the dtypes, and which of the axes that are declared as sorted
    or unique are so: coordinates may have any order.
    Raises a `FormatError` that names the first invalid element.

    >>> indptr, indices = np.array([0, 2, 2]), np.array([0, 2])
    >>> from_arrays("csr", (2, 3), indptr=indptr, indices=indices, data=np.ones(2))
    SparseTensor(csr, 2 by 3, 2 nonzeros, float64, 56 bytes)
    >>> blocks = np.arange(8.0)
    >>> indptr, indices = np.array([0, 1, 2]), np.array([0, 0])
    >>> from_arrays(
    ...     "bsr", (4, 2), indptr=indptr, indices=indices, data=blocks, block_rows=2, block_columns=2
    ... )
    SparseTensor(bsr, 4 by 2, 8 nonzeros, float64, 104 bytes)
    """
    lengths = required_shape(shape)
    description = describe(format, ndim=len(lengths))
    copies = {
        name: owned_array(numpy_array(name, array))
        for name, array in arrays.items()
        if not isinstance(array, int)
    }
    sizes = {name: size for name, size in arrays.items() if isinstance(size, int)}
    _require_names(description, copies)
    return tensor_of_arrays(description, lengths, copies, sizes=sizes)


def _require_names(description: FormatDescription, arrays: Mapping[str, Array]) -> None:
    expected = {param.name for param in description.params if param.dtype == "handle"}
    if set(arrays) != expected:
        names = ", ".join(sorted(arrays)) or "none"
        raise FormatError(
            "format.arrays", f"The arrays are {names}; expected {', '.join(sorted(expected))}."
        )
