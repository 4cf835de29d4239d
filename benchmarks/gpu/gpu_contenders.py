"""The contenders on a GPU. Each prepares a case, and runs in a process of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.contenders import OURS
from benchmarks.contenders.contender import ContenderCall, UnavailableError
from benchmarks.gpu.cusparse import CUSPARSE_LIBRARY, Cusparse, DeviceMatrix, spmm_calls
from benchmarks.gpu.encoded_integers import encoded_integers
from benchmarks.gpu.gpu_clocks import GpuClock, cupy_clock, driver_clock, host_clock, torch_clock
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

MATMUL_24 = "matmul_24"
BLOCK_SPMM = "bsr_spmm"
SEARCH_CALLS = 5
"""The calls of an algorithm of cuSPARSE, the fastest of which is compared with that of others."""
TORCH_DTYPES = {"float8_e4m3": "float8_e4m3fn"}
"""The names of dtypes that PyTorch calls otherwise."""


class GpuPrepared(NamedTuple):
    """The call to time, a function that makes it and returns its result, the clock, and the digest of the
    code, if it is known."""

    call: ContenderCall
    result: Callable[[], Array]
    clock: GpuClock
    digest: str | None = None
    conversion: float | None = None

    def activate(self) -> None:
        """Do nothing: a GPU has no number of threads."""


GpuPrepare: TypeAlias = Callable[[OperatorCase, str], GpuPrepared]
"""Prepares a case for a target of gossamer, or raises `UnavailableError` or ImportError."""


def prepare_gossamer(case: OperatorCase, target: str) -> GpuPrepared:
    """Bind the operator to arrays of the GPU, or of the host if the target copies those."""
    from gossamer.targets.resolve_target import resolve_target
    from gossamer_backend import Device

    backend, resolved = resolve_target(target)
    number = int(resolved.option("device", "0"))
    is_on_host = (
        resolved.option("driver") == "interpreter" or resolved.option("host_arrays") == "copy"
    )

    def place(array: Array) -> Any:
        return array if is_on_host else backend.to_device(array, device=Device(2, number))

    out = place(np.zeros(result_shape(case), result_dtype(case)))
    bind: Callable[..., Any] = BINDINGS.get(case.op, _bound_operator)
    call = bind(case, out, place, target)
    clock = host_clock if is_on_host else driver_clock(_gpu_of(target))

    def result() -> Array:
        call()
        array: Array = np.array(out) if is_on_host else out.to_numpy()
        return array.reshape(case.result_shape)

    digest = hashlib.sha256(call.kernel.artifact.code).hexdigest()
    return GpuPrepared(call, result, clock, digest)


def _gpu_of(target: str) -> Any:
    from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
    from gossamer_cuda_mma_sp.target.gpu import gpu_of
    from gossamer_ir.interchange.records import Target

    gpu = gpu_of(Target.parse(target))
    return gpu_device(gpu.driver, gpu.number)


def _bound_operator(case: OperatorCase, out: Any, placed: Any, target: str) -> Any:
    import gossamer
    from gossamer.operators import operator_named

    csr = case.csr
    arrays = map(placed, (csr.indptr, csr.indices, csr.data))
    matrix = gossamer.CsrArrays(csr.shape, *arrays)
    operands = map(placed, case.operands)
    return operator_named(case.operator).bind(matrix, *operands, out=out, target=target)


def _bound_n_m(case: OperatorCase, out: Any, placed: Any, target: str) -> Any:
    from gossamer.operator_calls.operands.checked_operands import kernel_arguments, kernel_spec
    from gossamer.operator_calls.operator_kernels import kernel_for
    from gossamer.operators.matmul_24 import PROGRAM, checked_operands
    from gossamer_formats import prune
    from gossamer_formats.internal_api import VALUE_DTYPES, value_array_dtype
    from gossamer_machine.intrinsics.float8_operands import FLOAT8_OPERANDS

    dtype = str(case.value_dtype)
    left, right = case.operands
    matrix: Any = _stored_values(left, dtype)
    if dtype in VALUE_DTYPES and value_array_dtype(dtype).name != dtype:
        # Only a tensor tells these from integers.
        matrix = prune(left.astype(np.float32), "2:4").astype(dtype)
    checked = checked_operands(
        matrix, _stored_values(right, dtype), dtype if dtype in FLOAT8_OPERANDS else None
    )
    kernel = kernel_for(kernel_spec(checked, PROGRAM), target=target).kernel
    arguments = kernel_arguments(checked, PROGRAM, out)
    on_device = {
        name: placed(value) for name, value in arguments.items() if name in ("a", "indices", "b")
    }
    return kernel.bind(**{**arguments, **on_device})


def _bound_blocks(case: OperatorCase, out: Any, placed: Any, target: str) -> Any:
    from gossamer.api.compile import compile
    from gossamer_testkit.bsr_product import bsr_product

    bsr, (right,), dtype = case.bsr, case.operands, str(case.value_dtype)
    assert bsr is not None, "the problem has blocks"
    height, width = bsr.blocksize
    sizes = {"bh": height, "bw": width, "feat": right.shape[1]}
    kernel = compile(bsr_product(dtype), specialize=sizes, target=target)
    return kernel.bind(
        a=placed(_stored_values(bsr.data, dtype)),
        b=placed(_stored_values(right, dtype).reshape(-1, width, right.shape[1])),
        c=out,
        indptr=placed(bsr.indptr),
        indices=placed(bsr.indices),
        mb=bsr.shape[0] // height,
        nb=bsr.shape[1] // width,
        nnzb=len(bsr.data),
    )


BINDINGS: dict[str, Callable[..., Any]] = {MATMUL_24: _bound_n_m, BLOCK_SPMM: _bound_blocks}
"""The functions that bind problems other than those of an operator on CSR."""


def _stored_values(integers: Array, dtype: str) -> Array:
    from gossamer_formats.internal_api import VALUE_DTYPES, converted_values

    if dtype not in VALUE_DTYPES:
        return encoded_integers(integers, dtype)
    return converted_values(integers.astype(np.float32), "float32", dtype)


def result_shape(case: OperatorCase) -> tuple[int, ...]:
    """Return the shape of the result of gossamer: that of a product of blocks has rows of blocks."""
    if case.bsr is None:
        return case.result_shape
    rows, width = case.result_shape
    height = case.bsr.blocksize[0]
    return rows // height, height, width


def result_dtype(case: OperatorCase) -> np.dtype[Any]:
    """Return the dtype of the result: that in which products are added."""
    if case.value_dtype is None:
        dtype: np.dtype[Any] = case.dtype
        return dtype
    # Interpreters of other contenders have no gossamer.
    from gossamer_ir.core.dtypes import SUM_DTYPES

    return np.dtype(SUM_DTYPES.get(case.value_dtype, "float32"))


def _torch() -> Any:
    import torch

    if not torch.cuda.is_available():
        raise UnavailableError("torch finds no GPU")
    return torch


def _on_torch(torch: Any, array: Array, case: OperatorCase) -> Any:
    """Return an array on the GPU, in the dtype in which contenders compute."""
    tensor = torch.from_numpy(array).cuda()
    if case.value_dtype is None:
        return tensor
    return tensor.to(getattr(torch, TORCH_DTYPES.get(case.value_dtype, case.value_dtype)))


def _sparse_on_torch(torch: Any, case: OperatorCase) -> Any:
    """Return the matrix of a case on the GPU, in its blocks if it has any."""
    stored = case.stored
    places = [torch.from_numpy(each).cuda() for each in (stored.indptr, stored.indices)]
    make = torch.sparse_csr_tensor if case.bsr is None else torch.sparse_bsr_tensor
    return make(*places, _on_torch(torch, stored.data, case), size=stored.shape)


def _by_columns(matrix: Any) -> Any:
    return matrix.t().contiguous().t()


def _dense_product(torch: Any, left: Any, right: Any) -> Callable[[], Any]:
    """Return a call of cuBLAS."""
    if left.dtype == torch.int8:
        columns = _by_columns(right)
        return lambda: torch._int_mm(left, columns)
    if left.dtype == torch.float8_e4m3fn:
        columns, one = _by_columns(right), torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(
            left, columns, scale_a=one, scale_b=one, out_dtype=torch.float32
        )
    return lambda: torch.matmul(left, right)


def prepare_torch(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSE by PyTorch for sparse operators, cuBLAS for the dense product of a 2:4 matrix."""
    torch = _torch()
    operands = [_on_torch(torch, operand, case) for operand in case.operands]
    if case.op == MATMUL_24:
        return _torch_prepared(torch, _dense_product(torch, *operands))
    from benchmarks.contenders import torch as torch_on_cpu

    matrix = _sparse_on_torch(torch, case)
    out = torch.zeros(case.result_shape, dtype=matrix.values().dtype, device="cuda")
    call, _ = torch_on_cpu.CALLS[case.op](matrix, operands, out)

    def compute() -> Any:
        call()
        return matrix.values() if case.op == "sddmm" else out

    return _torch_prepared(torch, compute)


def prepare_cusparse(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSE itself, with the algorithm that takes the least time."""
    if case.op != "spmm":
        raise UnavailableError("cuSPARSE has one algorithm for others than spmm, that of PyTorch")
    torch = _torch()
    csr = case.csr
    kept: dict[int, Any] = {}
    """The tensors by their places: the calls of cuSPARSE have only these."""
    rows = np.repeat(np.arange(csr.shape[0], dtype=np.int32), np.diff(csr.indptr))

    def place(tensor: Any) -> int:
        at = int(tensor.data_ptr())
        kept[at] = tensor
        return at

    arrays = (csr.indptr, rows, csr.indices, csr.data)
    places = [place(torch.from_numpy(array).cuda()) for array in arrays]
    matrix = DeviceMatrix(csr.shape, csr.nnz, csr.data.dtype.name, *places)
    right = torch.from_numpy(case.operands[0]).cuda()
    out = place(torch.zeros(case.result_shape, dtype=right.dtype, device="cuda"))
    calls = spmm_calls(
        Cusparse(torch.cuda.current_stream().cuda_stream, CUSPARSE_LIBRARY),
        matrix,
        place(right),
        out,
        case.result_shape[1],
        lambda size: place(torch.empty(size, dtype=torch.int8, device="cuda")),
    )
    clock = torch_clock(torch)
    fastest = min(calls, key=lambda each: min(clock(each[1]) for _ in range(SEARCH_CALLS)))[1]

    def compute() -> Any:
        fastest()
        return kept[out]

    return _torch_prepared(torch, compute)


def prepare_cusparselt(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSELt by PyTorch, with the algorithm that its search finds."""
    if case.op != MATMUL_24:
        raise UnavailableError("cuSPARSELt multiplies 2:4 matrices only")
    torch = _torch()
    left, right = (_on_torch(torch, operand, case) for operand in case.operands)
    sums = None
    if left.dtype.itemsize == 1:
        # Tensor cores take columns of these as they are in memory.
        right = _by_columns(right)
        sums = torch.int32 if left.dtype == torch.int8 else torch.float32
    compressed = torch._cslt_compress(left)
    algorithm = torch._cslt_sparse_mm_search(compressed, right, out_dtype=sums)
    return _torch_prepared(
        torch,
        lambda: torch._cslt_sparse_mm(compressed, right, out_dtype=sums, alg_id=algorithm),
    )


def _torch_prepared(torch: Any, call: Callable[[], Any]) -> GpuPrepared:
    def result() -> Array:
        array: Array = call().float().cpu().numpy()
        return array

    return GpuPrepared(call, result, torch_clock(torch))


def prepare_triton(case: OperatorCase, _target: str) -> GpuPrepared:
    """Prepare the kernels of Triton for blocks that PyTorch has."""
    if case.op != BLOCK_SPMM:
        raise UnavailableError("the kernels of Triton are for blocks only")
    torch = _torch()
    from torch.sparse._triton_ops import bsr_dense_mm

    if bsr_dense_mm is None:
        raise UnavailableError("PyTorch does not find Triton")
    matrix = _sparse_on_torch(torch, case)
    (right,) = (_on_torch(torch, operand, case) for operand in case.operands)
    return _torch_prepared(torch, lambda: bsr_dense_mm(matrix, right))


def prepare_cupy(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSE by CuPy."""
    import cupy
    import cupyx.scipy.sparse

    if case.op not in ("spmm", "spmv"):
        raise UnavailableError(f"CuPy does not have {case.op}")
    matrix = cupyx.scipy.sparse.csr_matrix(
        tuple(map(cupy.asarray, (case.csr.data, case.csr.indices, case.csr.indptr))),
        shape=case.csr.shape,
    )
    operand = cupy.asarray(case.operands[0])

    def call() -> Any:
        return matrix @ operand

    return GpuPrepared(call, lambda: cupy.asnumpy(call()), cupy_clock(cupy))


GPU_CONTENDERS: dict[str, GpuPrepare] = {
    OURS: prepare_gossamer,
    "torch": prepare_torch,
    "cusparse": prepare_cusparse,
    "cusparselt": prepare_cusparselt,
    "triton": prepare_triton,
    "cupy": prepare_cupy,
}
