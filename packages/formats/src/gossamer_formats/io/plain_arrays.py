"""Makes tensors from NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gossamer_formats.arrays.csr_arrays import csr_storage, require_shape
from gossamer_formats.descriptions import csr
from gossamer_formats.installed_formats import format_named
from gossamer_formats.ownership import owned_array
from gossamer_formats.storage import Array
from gossamer_formats.tensor import SparseTensor, checked_csr
from gossamer_ir.errors import FormatError
from gossamer_ir.support.typed_calls import typed


@typed
def from_arrays(format: str, shape: Sequence[int], **arrays: Array) -> SparseTensor:
    """Return a tensor made from arrays, which are passed by their names in the format's description.

    The format is CSR or registered (`installed_formats`). Arrays are copied. Those of CSR have one dimension:
    indices of int32 or int64, values of float32 or float64.
    The tensor's description records the dtypes, and whether columns are sorted and unique.
    Raises a `FormatError` that names the first invalid element.

    >>> indptr, indices = np.array([0, 2, 2]), np.array([0, 2])
    >>> from_arrays("csr", (2, 3), indptr=indptr, indices=indices, data=np.ones(2))
    SparseTensor(csr, 2 by 3, 2 nonzeros, float64, 56 bytes)
    """
    registered = format_named(format) if format != "csr" else None
    if registered is None:
        _require_names(arrays)
    copies = {name: owned_array(np.asarray(array)) for name, array in arrays.items()}
    sizes = require_shape(shape)
    if registered is None:
        return SparseTensor.of_checked(checked_csr(csr_storage(sizes, copies)))
    return SparseTensor(registered.from_arrays(sizes, copies))


def _require_names(arrays: Mapping[str, Array]) -> None:
    expected = {param.name for param in csr().params if param.dtype == "handle"}
    if set(arrays) != expected:
        given = ", ".join(sorted(arrays)) or "none"
        raise FormatError(
            "format.arrays", f"The arrays are {given}; expected {', '.join(sorted(expected))}."
        )
