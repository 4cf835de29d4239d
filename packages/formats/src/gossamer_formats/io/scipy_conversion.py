"""Tensors from and to SciPy's sparse matrices and arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gossamer_formats.arrays.borrowed_matrices import unchecked_storage
from gossamer_formats.tensor import SparseTensor, checked_csr
from gossamer_ir.support.typed_calls import typed

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def from_scipy(matrix: Any, *, dtype: str | None = None) -> SparseTensor:
    """Return a CSR tensor with the contents of a two-dimensional SciPy sparse matrix or array, copied.

    Values must be float32 or float64, unless `dtype` is given, to which real values are converted.
    The order of columns, duplicates and explicit zeros are kept. Raises `FormatError`.

    >>> from scipy.sparse import eye_array
    >>> from_scipy(eye_array(3, dtype="float32"))
    SparseTensor(csr, 3 by 3, 3 nonzeros, float32, 40 bytes)
    """
    return SparseTensor.of_checked(checked_csr(unchecked_storage(matrix, dtype)))


@typed
def to_scipy(tensor: SparseTensor) -> csr_array:
    """Return a SciPy `csr_array` with copies of the tensor's arrays.

    >>> from scipy.sparse import eye_array
    >>> to_scipy(from_scipy(eye_array(2))).nnz
    2
    """
    from scipy.sparse import csr_array

    arrays, (rows, columns) = tensor.asformat("csr").arrays, tensor.shape
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    return csr_array(parts, shape=(rows, columns), copy=True)
