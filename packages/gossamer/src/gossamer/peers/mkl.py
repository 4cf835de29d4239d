"""Intel's MKL through its wheel: sparse matrix times matrix and vector, hinted and optimised."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gossamer_formats import Array, SparseTensor
from gossamer_ir.errors import ArgumentError, InternalError

_NOT_TRANSPOSED, _GENERAL, _ROW_MAJOR, _CALLS = 10, 20, 101, 1000
_LIBRARIES = ("libmkl_rt.so.3", "libmkl_rt.so.2")


class _Description(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int))


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """MKL as installed beside this Python, None where it is not.

    Its threads stop spinning after a call (KMP_BLOCKTIME), or they would slow down whoever comes next.
    """
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    for name in _LIBRARIES:
        path = Path(sys.prefix) / "lib" / name
        if path.is_file():
            return ctypes.CDLL(str(path))
    return None


def set_num_threads(count: int) -> None:
    """Sets the threads of MKL, where it is installed."""
    found = library()
    if found is not None:
        found.MKL_Set_Num_Threads(ctypes.c_int(count))


class MklMatrix:
    """MKL's handle of a tensor with int32 indices; `hint` tells it the columns of B (0: a vector)."""

    def __init__(self, tensor: SparseTensor, *, hint: int, optimize: bool = True) -> None:
        found = library()
        if found is None:
            raise ArgumentError("peers.mkl", "MKL is not installed.", hint="pip install mkl.")
        if max(*tensor.shape, tensor.nnz) >= 2**31:
            raise ArgumentError("peers.mkl", "The matrix is too large for MKL's int32 indices.")
        self._library = found
        self._letter = "s" if tensor.dtype == "float32" else "d"
        self._scalar: Any = ctypes.c_float if tensor.dtype == "float32" else ctypes.c_double
        self._dtype = tensor.dtype
        self._shape = tensor.shape
        self._arrays = self._copies(tensor)
        self._handle = ctypes.c_void_p()
        self._create()
        self._give_hint(hint)
        if optimize:
            self._call("mkl_sparse_optimize", self._handle)

    def spmm(self, dense: Array, out: Array) -> None:
        """Writes A @ dense to out; both row-major, of the tensor's dtype."""
        self._require(dense, out)
        columns = dense.shape[1]
        self._call(
            f"mkl_sparse_{self._letter}_mm", _NOT_TRANSPOSED, self._scalar(1), self._handle,
            _Description(_GENERAL), _ROW_MAJOR, _pointer(dense), columns, columns,
            self._scalar(0), _pointer(out), columns,
        )  # fmt: skip

    def spmv(self, vector: Array, out: Array) -> None:
        """Writes A @ vector to out."""
        self._require(vector, out)
        self._call(
            f"mkl_sparse_{self._letter}_mv", _NOT_TRANSPOSED, self._scalar(1), self._handle,
            _Description(_GENERAL), _pointer(vector), self._scalar(0), _pointer(out),
        )  # fmt: skip

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.mkl_sparse_destroy(self._handle)

    def _copies(self, tensor: SparseTensor) -> tuple[Array, Array, Array]:
        """Private copies, since MKL may write to what it is given."""
        arrays = tensor.arrays
        return (
            arrays["indptr"].astype(np.int32),
            arrays["indices"].astype(np.int32),
            arrays["data"].copy(),
        )

    def _create(self) -> None:
        indptr, indices, data = self._arrays
        rows, columns = self._shape
        begins = _pointer(indptr)
        ends = ctypes.c_void_p(indptr.ctypes.data + indptr.itemsize)
        self._call(
            f"mkl_sparse_{self._letter}_create_csr", ctypes.byref(self._handle), 0, rows, columns,
            begins, ends, _pointer(indices), _pointer(data),
        )  # fmt: skip

    def _give_hint(self, columns: int) -> None:
        common = (self._handle, _NOT_TRANSPOSED, _Description(_GENERAL))
        if columns:
            self._call("mkl_sparse_set_mm_hint", *common, _ROW_MAJOR, columns, _CALLS)
        else:
            self._call("mkl_sparse_set_mv_hint", *common, _CALLS)

    def _require(self, dense: Array, out: Array) -> None:
        for array, length in ((dense, self._shape[1]), (out, self._shape[0])):
            fits = array.dtype == self._dtype and array.shape[0] == length
            if not (fits and array.flags.c_contiguous):
                raise ArgumentError("peers.mkl", "The operands do not fit the matrix.")

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._library, name)(*args)
        if status:
            raise InternalError(f"{name} returned the status {status}.")


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
