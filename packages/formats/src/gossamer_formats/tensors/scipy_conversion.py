"""Tensors from and to SciPy's sparse matrices and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer_formats.checks.array_checks import require_value_dtype
from gossamer_formats.checks.owned_storage import checked_copy
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.external_formats.scipy_matrix import ScipyMatrix
from gossamer_formats.tensors.scipy_own_format import arrays_in_own_format
from gossamer_formats.tensors.scipy_storage import unchecked_storage
from gossamer_formats.tensors.sharing import require_shared
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.tensors.standard_formats import in_format_with
from gossamer_formats.tensors.tensor_of_arrays import tensor_of_arrays
from gossamer_formats.value_dtypes import SCIPY_DTYPES
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.typed_calls import typed


def from_scipy(
    matrix: Any, *, dtype: str | None = None, format: str = "csr", copy: bool = True
) -> SparseTensor:
    """Return a tensor with the contents of a SciPy sparse matrix or array, in CSR unless `format` is given.

    `format="same"` keeps the formats csr, csc, bsr, coo (of any number of dimensions) and dia; dok and lil
    become csr. Other names are those of `SparseTensor.asformat`. Values must be float32, float64 or int8,
    unless `dtype` is given, to which real values are converted. In csr and in a format that is kept, the
    order of coordinates, duplicates and explicit zeros are kept. Raises `FormatError`.

    With `copy=False` the tensor borrows the arrays of the matrix (`SparseTensor.is_borrowed`); `FormatError`
    (`format.copy`) if one must be converted. The caller may change values, but should not change the
    structure. Since this cannot be prevented, operators check the structure at each call, as
    that of a SciPy matrix.

    >>> from scipy.sparse import eye_array
    >>> from_scipy(eye_array(3, dtype="float32"))
    SparseTensor(csr, 3 by 3, 3 nonzeros, float32, 40 bytes)
    >>> matrix = eye_array(3, format="csc")
    >>> tensor = from_scipy(matrix, format="same", copy=False)
    >>> tensor
    SparseTensor(csc, 3 by 3, 3 nonzeros, float64, 52 bytes)
    >>> matrix.data[:] = 7
    >>> tensor.arrays["data"]
    array([7., 7., 7.])
    """
    if dtype is not None and dtype not in SCIPY_DTYPES:
        require_value_dtype(dtype)
        if not copy:
            raise FormatError(
                "format.copy",
                f"The values of a SciPy matrix must be converted to {dtype}, so they cannot be shared.",
                hint="Use copy=True.",
            )
        return from_scipy(matrix, dtype="float64", format=format).astype(dtype)
    # SciPy's conversions to CSR are not needed for a format that is kept.
    own_arrays = arrays_in_own_format(matrix, dtype) if format == "same" else None
    if own_arrays is not None and matrix.format != "csr":
        if not copy:
            require_shared(f"the {matrix.format} matrix", own_arrays.arrays, _arrays_of(matrix))
        return tensor_of_arrays(
            matrix.format, matrix.shape, own_arrays.arrays, sizes=own_arrays.sizes, copy=copy
        )
    storage = unchecked_storage(matrix, dtype)
    if not copy:
        if format not in ("csr", "same"):
            raise FormatError(
                "format.copy",
                f"A tensor in the format '{format}' cannot share the arrays of a SciPy matrix.",
                hint="Use format='same', or copy=True.",
            )
        require_shared(f"the {matrix.format} matrix", storage.arrays, _arrays_of(matrix))
        return SparseTensor.from_borrowed(storage)
    tensor = SparseTensor.from_checked(checked_copy(storage, csr()))
    return tensor if format in ("csr", "same") else tensor.asformat(format)


@typed
def to_scipy(tensor: SparseTensor, *, copy: bool = True) -> Any:
    """Return a SciPy array in the tensor's format if that is csr, csc, bsr, coo or dia, else in csr.

    A tensor that does not have two dimensions becomes a `coo_array`. With `copy=False` the result shares the
    arrays of the tensor. They are read-only, so that SciPy raises `ValueError` where it would change them.
    `FormatError`: `format.copy` if the tensor must be converted, `format.dtype` for values of
    float16 and bfloat16, which SciPy lacks.

    >>> from scipy.sparse import eye_array
    >>> to_scipy(from_scipy(eye_array(2))).nnz
    2
    >>> tensor = from_scipy(eye_array(2, format="coo"), format="same")
    >>> matrix = to_scipy(tensor, copy=False)
    >>> matrix.format, matrix.data is tensor.arrays["data"]
    ('coo', True)
    """
    require_value_dtype(tensor.value_dtype, allowed=SCIPY_DTYPES)
    converted, matrices = in_format_with(tensor, ScipyMatrix)
    if not copy and converted is not tensor:
        raise FormatError(
            "format.copy",
            f"The format '{tensor.format}' must be converted for SciPy, so its arrays cannot be shared.",
            hint="Use copy=True.",
        )
    # Over the tensor's arrays, so that the copy below is the only one.
    matrix = matrices.to_scipy(converted.storage)
    return matrix.copy() if copy else matrix


def _arrays_of(matrix: Any) -> list[Array]:
    names = ("data", "indices", "indptr", "offsets")
    attributes = [getattr(matrix, name, None) for name in names]
    # COO has a tuple of arrays instead of the attributes above.
    attributes += getattr(matrix, "coords", ())
    return [array for array in attributes if isinstance(array, np.ndarray)]
