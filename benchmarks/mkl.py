"""MKL through its wheel: the few functions of its inspector-executor interface, by ctypes."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_void_p
from functools import cache
from pathlib import Path

from scipy import sparse

from benchmarks.problem import Array

NON_TRANSPOSE, GENERAL, ROW_MAJOR, INDEX_BASE_ZERO = 10, 20, 101, 0
EXPECTED_CALLS = 10_000
THREADING_LAYERS = {"intel": 0, "gnu": 3}


class Description(ctypes.Structure):
    """`struct matrix_descr`, passed by value."""

    _fields_ = (("type", c_int), ("mode", c_int), ("diag", c_int))


PLAIN = Description(GENERAL, 0, 0)


class MklError(Exception):
    """MKL is not installed, or one of its calls returned an error status."""


def library_path() -> Path:
    """Where the `mkl` wheel put `libmkl_rt`; `MklError` when it is not installed."""
    try:
        files = importlib.metadata.files("mkl") or []
    except importlib.metadata.PackageNotFoundError:
        raise MklError("the mkl package is not installed") from None
    for file in files:
        if file.name.startswith(("libmkl_rt.so", "libmkl_rt.dylib")):
            return Path(str(file.locate())).resolve()
    raise MklError("the mkl package holds no libmkl_rt")


@cache
def load_mkl() -> ctypes.CDLL:
    """MKL with 32-bit integers on GNU threads (`MKL_THREADING_LAYER` overrides): in one process
    with other OpenMP code a second runtime, whose threads spin, would disturb everybody."""
    library = ctypes.CDLL(str(library_path()))
    layer = os.environ.get("MKL_THREADING_LAYER", "gnu").lower()
    library.MKL_Set_Interface_Layer(0)
    if layer not in THREADING_LAYERS:
        raise MklError(f"MKL_THREADING_LAYER is '{layer}', expected one of intel, gnu")
    if library.MKL_Set_Threading_Layer(THREADING_LAYERS[layer]) != THREADING_LAYERS[layer]:
        raise MklError(f"MKL does not take the threading layer '{layer}'")
    return library


def set_threads(threads: int) -> None:
    """How many threads MKL uses from now on."""
    load_mkl().MKL_Set_Num_Threads(c_int(threads))


def address(array: Array) -> c_void_p:
    """The array's data; the caller keeps the array alive."""
    return c_void_p(array.ctypes.data)


class MklMatrix:
    """A CSR matrix in MKL; `features` 0 stands for SpMV. With `optimize`, MKL is told what is to
    come and may rearrange the matrix beforehand."""

    def __init__(self, matrix: sparse.csr_matrix, *, features: int, optimize: bool) -> None:
        self._library = load_mkl()
        self._arrays = (matrix.indptr, matrix.indices, matrix.data)
        self.handle = c_void_p()
        starts, columns, values = map(address, self._arrays)
        ends = c_void_p((starts.value or 0) + matrix.indptr.itemsize)
        rows, width = map(c_int, matrix.shape)
        create = self._library.mkl_sparse_s_create_csr
        where = byref(self.handle)
        status = create(where, c_int(INDEX_BASE_ZERO), rows, width, starts, ends, columns, values)
        self.require_ok(status, "mkl_sparse_s_create_csr")
        if optimize:
            self._optimize(features)

    def _optimize(self, features: int) -> None:
        plain, calls = c_int(NON_TRANSPOSE), c_int(EXPECTED_CALLS)
        if features:
            layout, width = c_int(ROW_MAJOR), c_int(features)
            hint = self._library.mkl_sparse_set_mm_hint
            self.require_ok(hint(self.handle, plain, PLAIN, layout, width, calls), "set_mm_hint")
        else:
            hint = self._library.mkl_sparse_set_mv_hint
            self.require_ok(hint(self.handle, plain, PLAIN, calls), "set_mv_hint")
        self.require_ok(self._library.mkl_sparse_optimize(self.handle), "mkl_sparse_optimize")

    def __del__(self) -> None:
        if self.handle.value:
            self._library.mkl_sparse_destroy(self.handle)

    def product(self, operand: Array, result: Array) -> Callable[[], None]:
        """A call without arguments that writes A times the operand into `result`."""
        one, zero, plain = c_float(1.0), c_float(0.0), c_int(NON_TRANSPOSE)
        source, target = address(operand), address(result)
        if operand.ndim == 1:
            return self._checked(
                "mkl_sparse_s_mv", plain, one, self.handle, PLAIN, source, zero, target
            )
        width = c_int(operand.shape[1])
        dense = (c_int(ROW_MAJOR), source, width, width, zero, target, width)
        return self._checked("mkl_sparse_s_mm", plain, one, self.handle, PLAIN, *dense)

    def _checked(self, name: str, *arguments: object) -> Callable[[], None]:
        """A call of one of MKL's functions; it keeps the matrix alive."""
        function = getattr(self._library, name)

        def call() -> None:
            self.require_ok(function(*arguments), name)

        return call

    @staticmethod
    def require_ok(status: int, call: str) -> None:
        """MKL's statuses: 0 is success."""
        if status:
            raise MklError(f"{call} returned status {status}")
