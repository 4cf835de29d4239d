"""The product of a sparse and a dense matrix by cuSPARSE, with each of its algorithms.

PyTorch and CuPy call the algorithm that cuSPARSE takes by default, which often is not the fastest one. So
this module calls the library itself, on the memory of tensors.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

from benchmarks.contenders.contender import ContenderCall, UnavailableError

CUSPARSE_LIBRARY = "libcusparse.so.12"
"""The name of the library of CUDA 12 and of CUDA 13. PyTorch has loaded it when it is imported."""
CSR_ALGORITHMS = {"default": 0, "CSR 1": 4, "CSR 2": 6, "CSR 3": 12}
COO_ALGORITHMS = {"COO 1": 1, "COO 2": 2, "COO 3": 3, "COO 4": 5}
"""The numbers of `cusparseSpMMAlg_t`."""
SCALARS: dict[str, tuple[int, Any]] = {"float32": (0, c_float), "float64": (1, c_double)}
"""The number of a dtype in `cudaDataType`, and the type of the factors of a product."""
INT32, BASE_ZERO, ROW_MAJOR, UNTRANSPOSED = 2, 0, 2, 0
"""Values of `cusparseIndexType_t`, `cusparseIndexBase_t`, `cusparseOrder_t` and `cusparseOperation_t`."""


class CusparseError(Exception):
    """A function of cuSPARSE that returned another status than success."""


class DeviceMatrix(NamedTuple):
    """A matrix in CSR on the GPU: its sizes and the places of its arrays, and of its rows as COO has them."""

    shape: tuple[int, int]
    nnz: int
    dtype: str
    indptr: int
    rows: int
    indices: int
    values: int


class Cusparse:
    """The library, whose functions raise `CusparseError` if they fail."""

    def __init__(self, stream: int, name: str) -> None:
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise UnavailableError(f"cuSPARSE cannot be loaded: {error}") from error
        self.handle = c_void_p()
        self.call("cusparseCreate", byref(self.handle))
        self.call("cusparseSetStream", self.handle, c_void_p(stream))

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise CusparseError(f"{name} returned the status {status}")

    def descriptor(self, name: str, *arguments: Any) -> c_void_p:
        made = c_void_p()
        self.call(name, byref(made), *arguments)
        return made


def spmm_calls(
    cusparse: Cusparse,
    matrix: DeviceMatrix,
    right: int,
    out: int,
    features: int,
    allocate: Callable[[int], int],
) -> Iterator[tuple[str, ContenderCall]]:
    """Yield the name of each algorithm that multiplies a matrix, and the call of it.

    `right` and `out` are the places of matrices with rows that are contiguous. `allocate` returns the place
    of a number of bytes, which are kept.
    """
    dtype, scalar = SCALARS[matrix.dtype]
    rows, columns = matrix.shape
    coordinates = (c_void_p(matrix.indices), c_void_p(matrix.values), INT32)
    sizes = (c_int64(rows), c_int64(columns), c_int64(matrix.nnz))
    csr = cusparse.descriptor(
        "cusparseCreateCsr", *sizes, c_void_p(matrix.indptr), *coordinates, INT32, BASE_ZERO, dtype
    )
    coo = cusparse.descriptor(
        "cusparseCreateCoo", *sizes, c_void_p(matrix.rows), *coordinates, BASE_ZERO, dtype
    )
    dense = [
        cusparse.descriptor(
            "cusparseCreateDnMat",
            c_int64(height),
            c_int64(features),
            c_int64(features),
            c_void_p(place),
            dtype,
            ROW_MAJOR,
        )
        for height, place in ((columns, right), (rows, out))
    ]
    for stored, algorithms in ((csr, CSR_ALGORITHMS), (coo, COO_ALGORITHMS)):
        product = _Product(cusparse, stored, dense, scalar(1), scalar(0), dtype, stored is csr)
        for name, number in algorithms.items():
            try:
                yield name, product.prepared_call(number, allocate)
            except CusparseError:
                continue  # it does not have this order or this dtype


class _Product(NamedTuple):
    cusparse: Cusparse
    stored: c_void_p
    dense: list[c_void_p]
    one: Any
    zero: Any
    dtype: int
    is_preprocessed: bool
    """True for the format for which cuSPARSE analyses the pattern once."""

    def prepared_call(self, algorithm: int, allocate: Callable[[int], int]) -> ContenderCall:
        """Return the call, after one that shows whether the algorithm takes these operands."""
        right, out = self.dense
        operands = (
            self.cusparse.handle,
            c_int(UNTRANSPOSED),
            c_int(UNTRANSPOSED),
            byref(self.one),
            self.stored,
            right,
            byref(self.zero),
            out,
            c_int(self.dtype),
            c_int(algorithm),
        )
        size = c_size_t()
        self.cusparse.call("cusparseSpMM_bufferSize", *operands, byref(size))
        buffer = c_void_p(allocate(max(size.value, 1)))
        if self.is_preprocessed:
            self.cusparse.call("cusparseSpMM_preprocess", *operands, buffer)

        def call() -> None:
            self.cusparse.call("cusparseSpMM", *operands, buffer)

        call()
        return call
