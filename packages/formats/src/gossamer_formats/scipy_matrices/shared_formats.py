"""The formats that SciPy and this library share: a record for each, with the conversions of its arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.checks.shapes import require_shape
from gossamer_formats.checks.storage_checks import (
    check_indices,
    check_indptr,
    require_value_dtype,
)
from gossamer_formats.conversion.target.dtypes import with_dtypes_of
from gossamer_formats.scipy_matrices.matrix_checks import (
    matrix_values,
    require_arrays,
    require_matrix,
    require_values,
    used_slots,
)
from gossamer_formats.storage import Array, Storage
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.support.counted import counted


class SharedLayout(NamedTuple):
    """A format by name, its arrays, and the sizes that do not follow from them and the shape."""

    format: str
    arrays: Mapping[str, Array]
    sizes: Mapping[str, int] = {}


class SharedFormat(NamedTuple):
    """A format that SciPy has under the same name.

    `layout` takes a SciPy matrix and a dtype or None, and returns the arrays; it copies those that need a
    conversion. `to_scipy` takes the storage of a tensor and returns a SciPy array over its arrays. `check`
    takes a matrix and raises `FormatError` unless the arrays are valid that SciPy's own conversion to CSR
    reads without checks (None: there is no conversion). `borrow` takes a matrix and returns its checked
    storage, if operators may compute with the format itself.
    """

    layout: Callable[[Any, str | None], SharedLayout]
    to_scipy: Callable[[Storage], Any]
    check: Callable[[Any], None] | None = None
    borrow: Callable[[Any], Storage] | None = None
    is_of_any_rank: bool = False


def shared_layout_of(matrix: Any, dtype: str | None) -> SharedLayout | None:
    """Return the arrays of a SciPy matrix in its own format, copied only if they need a conversion.

    Returns None if there is no such format here (`dok`, `lil`). Contents are not checked.
    """
    require_matrix(matrix, rank=None)
    if dtype is not None:
        require_value_dtype(dtype)
    shared = SHARED_FORMATS.get(matrix.format)
    if shared is None:
        return None
    require_matrix(matrix, rank=None if shared.is_of_any_rank else 2)
    return shared.layout(matrix, dtype)


def check_before_conversion(matrix: Any) -> None:
    """Check the arrays that SciPy's conversion to CSR reads without checks."""
    shared = SHARED_FORMATS.get(matrix.format)
    if shared is not None and shared.check is not None:
        shared.check(matrix)


def compressed_arrays(matrix: Any, dtype: str | None) -> dict[str, Array]:
    """Return the arrays of a SciPy matrix in CSR, CSC or BSR, copied only if they need a conversion."""
    require_arrays(matrix, "indptr", "indices", "data")
    used = slice(used_slots(matrix.indptr, matrix.indices))
    return {
        "indptr": np.ascontiguousarray(matrix.indptr),
        "indices": np.ascontiguousarray(matrix.indices[used]),
        "data": matrix_values(matrix.data[used], dtype),
    }


def _array_class(name: str) -> Any:
    """Return a class of SciPy. Its stubs have a signature for each number of dimensions, which callers do not
    know."""
    from scipy import sparse

    return getattr(sparse, name)


# CSR and CSC


def _compressed_layout(matrix: Any, dtype: str | None) -> SharedLayout:
    return SharedLayout(matrix.format, compressed_arrays(matrix, dtype))


def _check_csc(matrix: Any) -> None:
    rows, columns = matrix.shape
    _check_compressed(matrix, segments=columns, length=rows, dimensions=1)


def _check_compressed(matrix: Any, *, segments: int, length: int, dimensions: int) -> None:
    require_arrays(matrix, "indptr", "indices", "data")
    count = used_slots(matrix.indptr, matrix.indices)
    require_values(matrix, dimensions=dimensions, count=count)
    check_indptr(matrix.indptr, segments=segments, total=count)
    check_indices(matrix.indices[:count], length=length, count=count)


def _scipy_csr(storage: Storage) -> Any:
    return _array_class("csr_array")(_compressed_parts(storage), shape=storage.shape)


def _scipy_csc(storage: Storage) -> Any:
    return _array_class("csc_array")(_compressed_parts(storage), shape=storage.shape)


def _compressed_parts(storage: Storage) -> Any:
    arrays = storage.arrays
    return arrays["data"], arrays["indices"], arrays["indptr"]


# BSR


def _bsr_layout(matrix: Any, dtype: str | None) -> SharedLayout:
    require_arrays(matrix, "indptr", "indices", "data")
    require_values(matrix, dimensions=3, count=used_slots(matrix.indptr, matrix.indices))
    arrays = compressed_arrays(matrix, dtype)
    _, height, width = matrix.data.shape
    arrays["data"] = arrays["data"].reshape(-1)
    return SharedLayout("bsr", arrays, {"block_rows": height, "block_columns": width})


def _check_bsr(matrix: Any) -> None:
    require_arrays(matrix, "indptr", "indices", "data")
    # First, since SciPy takes the size of the blocks from the values.
    require_values(matrix, dimensions=3, count=used_slots(matrix.indptr, matrix.indices))
    rows, columns = matrix.shape
    height, width = matrix.blocksize
    _check_compressed(matrix, segments=rows // height, length=columns // width, dimensions=3)


def _borrow_bsr(matrix: Any) -> Storage:
    require_matrix(matrix)
    _check_bsr(matrix)
    layout = _bsr_layout(matrix, None)
    rows, columns = require_shape(matrix.shape, rank=2)
    indptr, indices, values = (layout.arrays[name] for name in ("indptr", "indices", "data"))
    sizes = {"m": rows, "n": columns, "blocks": indices.size, **layout.sizes}
    return Storage(_bsr_of(indptr.dtype, indices.dtype, values.dtype), sizes, layout.arrays)


# Cached, because operators ask at each call.
@lru_cache(maxsize=64)
def _bsr_of(indptr: Any, indices: Any, values: Any) -> FormatDescription:
    """Return the description of blocks in any order in arrays of these dtypes."""
    # The description is a script, whose parser an operator of CSR does not need.
    from gossamer_formats.checks.coordinate_order import without_order
    from gossamer_formats.descriptions.bsr import bsr

    dtypes = {"indptr": indptr, "indices": indices, "data": values}
    arrays = {name: np.empty(0, dtype) for name, dtype in dtypes.items()}
    return with_dtypes_of(without_order(bsr()), arrays)


def _scipy_bsr(storage: Storage) -> Any:
    data, indices, indptr = _compressed_parts(storage)
    sizes = storage.sizes
    blocks = data.reshape(-1, sizes["block_rows"], sizes["block_columns"])
    return _array_class("bsr_array")((blocks, indices, indptr), shape=storage.shape)


# COO


def _coo_layout(matrix: Any, dtype: str | None) -> SharedLayout:
    require_arrays(matrix, "data")
    arrays = {"data": matrix_values(matrix.data, dtype)}
    for number, array in enumerate(matrix.coords):
        if not isinstance(array, np.ndarray):
            raise FormatError(
                "format.kind",
                f"coords[{number}] of the matrix has the type '{type(array).__name__}'; expected a NumPy "
                "array.",
            )
        arrays[f"indices_{number}"] = np.ascontiguousarray(array)
    return SharedLayout("coo", arrays)


def _check_coo(matrix: Any) -> None:
    rows, columns = matrix.shape
    require_arrays(matrix, "row", "col", "data")
    for name, length, coordinates in (("row", rows, matrix.row), ("col", columns, matrix.col)):
        check_indices(coordinates, length=length, count=matrix.data.size, name=name)


def _scipy_coo(storage: Storage) -> Any:
    shape, arrays = storage.shape, storage.arrays
    coords = tuple(arrays[f"indices_{number}"] for number in range(len(shape)))
    return _array_class("coo_array")((arrays["data"], coords), shape=shape)


# DIA


def _dia_layout(matrix: Any, dtype: str | None) -> SharedLayout:
    require_arrays(matrix, "offsets", "data")
    require_values(matrix, dimensions=2, count=matrix.offsets.size)
    data = matrix_values(matrix.data, dtype)
    count, columns = matrix.offsets.size, matrix.shape[1]
    if data.shape != (count, columns):
        # SciPy's diagonals may be shorter or longer than the matrix is wide; missing slots are zeros.
        whole = np.zeros((count, columns), data.dtype)
        width = min(columns, data.shape[1])
        whole[:, :width] = data[:count, :width]
        data = whole
    return SharedLayout(
        "dia", {"offsets": np.ascontiguousarray(matrix.offsets), "data": data.reshape(-1)}
    )


def _check_dia(matrix: Any) -> None:
    require_arrays(matrix, "offsets", "data")
    require_values(matrix, dimensions=2, count=matrix.offsets.size)
    diagonals, offsets = matrix.data, matrix.offsets
    if offsets.ndim != 1 or offsets.dtype.kind != "i" or len(diagonals) != offsets.size:
        raise FormatError(
            "format.length",
            f"offsets has the shape {offsets.shape} and the dtype {offsets.dtype}; expected one integer "
            f"for each of {counted(len(diagonals), 'diagonal')}.",
        )


def _scipy_dia(storage: Storage) -> Any:
    arrays, sizes = storage.arrays, storage.sizes
    diagonals = arrays["data"].reshape(sizes["diagonals"], sizes["n"])
    return _array_class("dia_array")((diagonals, arrays["offsets"]), shape=storage.shape)


SHARED_FORMATS = {
    "csr": SharedFormat(_compressed_layout, _scipy_csr),
    "csc": SharedFormat(_compressed_layout, _scipy_csc, _check_csc),
    "bsr": SharedFormat(_bsr_layout, _scipy_bsr, _check_bsr, _borrow_bsr),
    "coo": SharedFormat(_coo_layout, _scipy_coo, _check_coo, is_of_any_rank=True),
    "dia": SharedFormat(_dia_layout, _scipy_dia, _check_dia),
}
"""The formats by name. CSR is first: tensors in other formats are converted to it."""
