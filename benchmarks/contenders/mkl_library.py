"""Bindings to Intel's MKL in its wheel, through ctypes: inspector-executor products of a sparse matrix."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from collections.abc import Callable
from ctypes import byref, c_int, c_void_p
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from benchmarks.contenders.contender import UnavailableError

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

# From mkl_spblas.h: `sparse_operation_t`, `sparse_matrix_type_t`,
# `sparse_layout_t`, `sparse_index_base_t`.
NON_TRANSPOSE, GENERAL, ROW_MAJOR, INDEX_BASE_ZERO = 10, 20, 101, 0
# The hint with which MKL decides how much preparation pays off: so many that it prepares all it can.
EXPECTED_CALLS = 10_000
# From mkl_service.h: MKL_THREADING_INTEL and MKL_THREADING_GNU.
THREADING_LAYERS = {"intel": 0, "gnu": 3}
LETTERS: dict[str, tuple[str, Any]] = {
    "float32": ("s", ctypes.c_float),
    "float64": ("d", ctypes.c_double),
}
"""The letter for each dtype in the names of MKL's functions, and its ctypes scalar."""


class MatrixDescr(ctypes.Structure):
    """`struct matrix_descr`, passed by value."""

    _fields_ = (("type", c_int), ("mode", c_int), ("diag", c_int))


PLAIN = MatrixDescr(GENERAL, 0, 0)


def library_path() -> Path | None:
    """Return the path of `libmkl_rt` in the `mkl` wheel, or None if it is not installed."""
    try:
        files = importlib.metadata.files("mkl") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name.startswith(("libmkl_rt.so", "libmkl_rt.dylib")):
            return Path(str(file.locate())).resolve()
    return None


@cache
def load_mkl() -> ctypes.CDLL:
    """Load MKL with 32-bit integers and GNU threads (`MKL_THREADING_LAYER` overrides this). A second OpenMP
    runtime in the process, whose threads spin, would slow down all others.

    `UnavailableError` if it is not installed or does not accept the layer.
    """
    path = library_path()
    if path is None:
        raise UnavailableError("MKL is not installed (pip install mkl)")
    layer = os.environ.get("MKL_THREADING_LAYER", "gnu").lower()
    if layer not in THREADING_LAYERS:
        raise UnavailableError(f"MKL_THREADING_LAYER is '{layer}'; expected intel or gnu")
    library = ctypes.CDLL(str(path))
    library.MKL_Set_Interface_Layer(0)
    if library.MKL_Set_Threading_Layer(THREADING_LAYERS[layer]) != THREADING_LAYERS[layer]:
        raise UnavailableError(f"MKL does not take the threading layer '{layer}'")
    return library


def set_mkl_threads(count: int) -> None:
    """Set the number of threads of MKL; errors as of `load_mkl`."""
    load_mkl().MKL_Set_Num_Threads(c_int(count))


class MklHandle:
    """A matrix in MKL with its own copies of the arrays: the part that all formats share.

    A subclass calls `_create` with the function of its format, and `_optimize` if MKL may rearrange the
    matrix.
    """

    def __init__(self, arrays: tuple[Array, Array, Array], shape: tuple[int, int]) -> None:
        self._library = load_mkl()
        if max(*shape, arrays[2].size) >= 2**31:
            raise UnavailableError("the matrix is too large for MKL's int32 indices")
        self._dtype, self._shape = str(arrays[2].dtype), shape
        self._letter, self._scalar = LETTERS[self._dtype]
        self._arrays = arrays
        self._handle = c_void_p()

    @property
    def values(self) -> Array:
        """The values that MKL reads; they may be overwritten if the matrix was not optimized."""
        return self._arrays[2]

    def product(self, dense: Array, out: Array) -> Callable[[], None]:
        """Return a function without arguments that writes A times dense to out; it keeps all three alive.

        Both arrays must be C-contiguous and of the matrix's dtype (`ValueError`).
        """
        self._require_fitting(dense, out)
        one, zero, plain = self._scalar(1), self._scalar(0), c_int(NON_TRANSPOSE)
        source, target = _pointer(dense), _pointer(out)
        common = (plain, one, self._handle, PLAIN)
        if dense.ndim == 1:
            name = "mv"
            arguments: tuple[Any, ...] = (*common, source, zero, target)
        else:
            width = c_int(dense.shape[1])
            layout = c_int(ROW_MAJOR)
            name, arguments = "mm", (*common, layout, source, width, width, zero, target, width)
        function = self._function(name)

        def call() -> None:
            self._require_ok(function(*arguments), name)

        return call

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.mkl_sparse_destroy(self._handle)

    def _create(self, operation: str, *sizes: int) -> None:
        """Create the handle; `sizes` are the arguments between the index base and the arrays."""
        indptr, indices, data = self._arrays
        ends = c_void_p(indptr.ctypes.data + indptr.itemsize)
        status = self._function(operation)(
            byref(self._handle),
            c_int(INDEX_BASE_ZERO),
            *map(c_int, sizes),
            _pointer(indptr),
            ends,
            _pointer(indices),
            _pointer(data),
        )
        self._require_ok(status, operation)

    def _optimize(self, features: int | None) -> None:
        common, calls = (self._handle, c_int(NON_TRANSPOSE), PLAIN), c_int(EXPECTED_CALLS)
        if features is None:
            status = self._library.mkl_sparse_set_mv_hint(*common, calls)
        else:
            layout, width = c_int(ROW_MAJOR), c_int(features)
            status = self._library.mkl_sparse_set_mm_hint(*common, layout, width, calls)
        self._require_ok(status, "hint")
        self._require_ok(self._library.mkl_sparse_optimize(self._handle), "optimize")

    def _require_fitting(self, dense: Array, out: Array) -> None:
        for array, length in ((dense, self._shape[1]), (out, self._shape[0])):
            fits = array.dtype == self._dtype and array.shape[0] == length
            if not (fits and array.flags.c_contiguous and array.shape[1:] == dense.shape[1:]):
                raise ValueError("the operands do not fit the matrix")

    def _function(self, operation: str) -> Any:
        return getattr(self._library, f"mkl_sparse_{self._letter}_{operation}")

    @staticmethod
    def _require_ok(status: int, operation: str) -> None:
        if status:
            raise RuntimeError(f"MKL's {operation} returned the status {status}")


class MklMatrix(MklHandle):
    """A SciPy matrix in MKL's CSR, for products with `features` columns (None: vectors).

    With `optimize`, MKL gets hints about the calls and may rearrange the matrix beforehand.
    """

    def __init__(
        self, matrix: sparse.csr_matrix, *, features: int | None, optimize: bool = True
    ) -> None:
        super().__init__(mkl_arrays(matrix.indptr, matrix.indices, matrix.data), matrix.shape)
        self._create("create_csr", *matrix.shape)
        if optimize:
            self._optimize(features)


def mkl_arrays(indptr: Array, indices: Array, data: Array) -> tuple[Array, Array, Array]:
    """Return copies with the index type of MKL, since it may write to its arguments."""
    return indptr.astype(np.int32), indices.astype(np.int32), data.copy(order="C")


def _pointer(array: Array) -> c_void_p:
    """Return a pointer to an array, which keeps the array alive."""
    return array.ctypes.data_as(c_void_p)
