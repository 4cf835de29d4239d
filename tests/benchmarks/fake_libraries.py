"""Stand-ins for PyTorch, its kernels of cuSPARSELt and Triton, and CuPy, which compute with NumPy.

They have what the contenders of `benchmarks.gpu` call, with the conditions of the libraries: dtypes of
operands must agree, and tensor cores for elements of 8 bits take the right operand by columns.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse

DTYPES = {
    name: SimpleNamespace(name=name, itemsize=itemsize)
    for name, itemsize in {
        "float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "int32": 4, "float8_e4m3fn": 1,
    }.items()
}  # fmt: skip


class Tensor:
    """An array of the GPU. Its elements are those of float64, which has all integers that tests use."""

    def __init__(self, array: Any, dtype: Any, *, is_on_gpu: bool = True) -> None:
        self.array, self.dtype, self.is_on_gpu = array, dtype, is_on_gpu

    @property
    def ndim(self) -> int:
        return int(self.array.ndim)

    def _like(self, array: Any) -> Tensor:
        return Tensor(array, self.dtype, is_on_gpu=self.is_on_gpu)

    def cuda(self) -> Tensor:
        return Tensor(self.array, self.dtype)

    def cpu(self) -> Tensor:
        return Tensor(self.array, self.dtype, is_on_gpu=False)

    def to(self, dtype: Any) -> Tensor:
        assert dtype in DTYPES.values()
        return Tensor(self.array, dtype, is_on_gpu=self.is_on_gpu)

    def float(self) -> Tensor:
        return self.to(DTYPES["float32"])

    def t(self) -> Tensor:
        return self._like(self.array.T)

    def contiguous(self) -> Tensor:
        return self._like(np.ascontiguousarray(self.array))

    def numpy(self) -> Any:
        assert not self.is_on_gpu, "NumPy does not take arrays of a GPU"
        return self.array.astype(np.float32)

    def zero_(self) -> None:
        self.array[...] = 0

    def data_ptr(self) -> int:
        """Return the place of the elements, which become those of its dtype."""
        self.array = np.ascontiguousarray(self.array, self.dtype.name)
        return int(self.array.ctypes.data)


class SparseMatrix:
    """A sparse matrix of the GPU, in CSR or blocks."""

    def __init__(self, matrix: Any, values: Tensor) -> None:
        self.matrix, self._values = matrix, values

    def values(self) -> Tensor:
        return self._values


def _require_gpu(*tensors: Tensor) -> None:
    assert all(tensor.is_on_gpu for tensor in tensors)
    assert len({tensor.dtype.name for tensor in tensors}) == 1, "operands of two dtypes"


def _product(left: Tensor, right: Tensor, dtype: Any = None, *, by_columns: bool = False) -> Tensor:
    _require_gpu(left, right)
    if by_columns:
        assert right.array.flags.f_contiguous
    return Tensor(left.array @ right.array, dtype or left.dtype)


def _int_mm(left: Tensor, right: Tensor) -> Tensor:
    assert left.dtype is DTYPES["int8"]
    return _product(left, right, DTYPES["int32"], by_columns=True)


def _scaled_mm(
    left: Tensor, right: Tensor, *, scale_a: Tensor, scale_b: Tensor, out_dtype: Any
) -> Tensor:
    assert left.dtype is DTYPES["float8_e4m3fn"]
    assert scale_a.array == scale_b.array == 1
    return _product(left, right, out_dtype, by_columns=True)


def _matmul(left: Tensor, right: Tensor) -> Tensor:
    assert left.dtype.itemsize > 1, "torch.matmul has no products of these on a GPU"
    return _product(left, right)


def _compress(matrix: Tensor) -> Tensor:
    groups = matrix.array.reshape(len(matrix.array), -1, 4)
    assert (np.count_nonzero(groups, axis=2) <= 2).all()
    return matrix


def _sparse_mm_search(compressed: Tensor, right: Tensor, *, out_dtype: Any = None) -> int:
    _sparse_mm(compressed, right, out_dtype=out_dtype, alg_id=0)
    return 7


def _sparse_mm(left: Tensor, right: Tensor, *, out_dtype: Any = None, alg_id: int) -> Tensor:
    assert alg_id in (0, 7)
    return _product(left, right, out_dtype, by_columns=left.dtype.itemsize == 1)


def _addmm(out: Tensor, matrix: SparseMatrix, right: Tensor, *, beta: int) -> None:
    _require_gpu(out, matrix.values(), right)
    assert beta == 0
    out.array[...] = matrix.matrix @ right.array


def _sampled_addmm(
    matrix: SparseMatrix, left: Tensor, right: Tensor, *, beta: float, out: SparseMatrix
) -> None:
    _require_gpu(matrix.values(), left, right)
    assert (beta, out) == (0.0, matrix)
    rows, columns = matrix.matrix.nonzero()
    matrix.values().array[...] = np.sum(left.array[rows] * right.array.T[columns], axis=1)


def _sparse_tensor(kind: Any) -> Any:
    def make(indptr: Tensor, indices: Tensor, values: Tensor, *, size: Any) -> SparseMatrix:
        places = (values.array, indices.array.astype(int), indptr.array.astype(int))
        return SparseMatrix(kind(places, shape=size), values)

    return make


class Event:
    """An event of both libraries, in a log."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        pass

    def record(self) -> None:
        self.log.append("record")

    def synchronize(self) -> None:
        self.log.append("wait")

    def elapsed_time(self, end: Event) -> float:
        return 2.0


class Buffer:
    """Memory that is written to flush a cache, or of a library."""

    def __init__(self, size: int) -> None:
        self.size = size

    def data_ptr(self) -> int:
        self.memory = np.empty(self.size, np.int8)
        return int(self.memory.ctypes.data)

    def zero_(self) -> None:
        Event.log.append("flush")

    def fill(self, value: int) -> None:
        Event.log.append("flush")


def _from_numpy(array: Any) -> Tensor:
    dtype = DTYPES.get(array.dtype.name, DTYPES["int32"])
    return Tensor(array.astype(np.float64), dtype, is_on_gpu=False)


def fake_torch() -> dict[str, ModuleType]:
    """Return the modules of PyTorch by name."""
    torch, sparse_module = ModuleType("torch"), ModuleType("torch.sparse")
    triton = ModuleType("torch.sparse._triton_ops")

    def new(shape: Any, value: float, dtype: Any = None, device: str | None = None) -> Tensor:
        assert device == "cuda"
        return Tensor(np.full(shape, value, np.float64), dtype or DTYPES["float32"])

    def addmm(*operands: Any, beta: int, out: Tensor) -> None:
        assert out is operands[0]
        _addmm(*operands, beta=beta)

    def bsr_dense_mm(matrix: SparseMatrix, right: Tensor) -> Tensor:
        _require_gpu(matrix.values(), right)
        return Tensor(matrix.matrix @ right.array, right.dtype)

    triton.bsr_dense_mm = bsr_dense_mm  # type: ignore[attr-defined]
    sparse_module.sampled_addmm = _sampled_addmm  # type: ignore[attr-defined]
    torch.__dict__.update(
        DTYPES,
        sparse=sparse_module,
        from_numpy=_from_numpy,
        zeros=lambda shape, **options: new(shape, 0.0, **options),
        ones=lambda shape, **options: new(shape, 1.0, **options),
        empty=lambda size, **options: Buffer(size),
        matmul=_matmul,
        addmm=addmm,
        addmv=addmm,
        sparse_csr_tensor=_sparse_tensor(sparse.csr_matrix),
        sparse_bsr_tensor=_sparse_tensor(sparse.bsr_matrix),
        _int_mm=_int_mm,
        _scaled_mm=_scaled_mm,
        _cslt_compress=_compress,
        _cslt_sparse_mm_search=_sparse_mm_search,
        _cslt_sparse_mm=_sparse_mm,
        cuda=SimpleNamespace(
            Event=Event,
            current_stream=lambda: SimpleNamespace(cuda_stream=0),
            is_available=lambda: True,
            get_device_properties=lambda number: SimpleNamespace(),
        ),
    )
    return {module.__name__: module for module in (torch, sparse_module, triton)}


def fake_cupy() -> dict[str, ModuleType]:
    """Return the modules of CuPy by name."""
    cupy = ModuleType("cupy")
    names = ("cupyx", "cupyx.scipy", "cupyx.scipy.sparse")
    package, scipy, sparse_module = map(ModuleType, names)
    package.scipy, scipy.sparse = scipy, sparse_module  # type: ignore[attr-defined]
    sparse_module.csr_matrix = sparse.csr_matrix  # type: ignore[attr-defined]
    cupy.__dict__.update(
        int8="int8",
        empty=lambda size, dtype: Buffer(size),
        asarray=np.asarray,
        asnumpy=np.asarray,
        cuda=SimpleNamespace(
            Event=Event,
            Device=lambda number: SimpleNamespace(attributes={}),
            get_elapsed_time=lambda start, end: 2.0,
        ),
    )
    return {module.__name__: module for module in (cupy, package, scipy, sparse_module)}


@cache
def fake_cusparse() -> str:
    """Compile a libcusparse that multiplies on the host, and return its path.

    Its name differs from that of the library, which PyTorch loads where it is installed.
    """
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    library = str(folder / "libcusparse-fake.so")
    source = Path(__file__).with_name("fake_libcusparse.c")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", library], check=True)
    return library
