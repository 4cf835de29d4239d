"""The contenders on a GPU. Each prepares a case, and runs in a process of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from benchmarks.contenders import OURS
from benchmarks.contenders.contender import ContenderCall, UnavailableError
from benchmarks.gpu.gpu_clocks import GpuClock, cupy_clock, driver_clock, host_clock, torch_clock
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_ir.support.arrays import Array

MATMUL_24 = "matmul_24"


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
    from gossamer.resolve_target import resolve_target
    from gossamer_backend import Device

    backend, resolved = resolve_target(target)
    number = int(resolved.option("device", "0"))
    is_on_host = (
        resolved.option("driver") == "interpreter" or resolved.option("host_arrays") == "copy"
    )

    def placed(array: Array) -> Any:
        return array if is_on_host else backend.to_device(array, device=Device(2, number))

    out = placed(np.zeros(case.result_shape, result_dtype(case)))
    bound = _bound_n_m(case, out, placed, target) if case.op == MATMUL_24 else None
    call = bound or _bound_operator(case, out, placed, target)
    clock = host_clock if is_on_host else driver_clock(_gpu_of(target))

    def result() -> Array:
        call()
        array: Array = np.array(out) if is_on_host else out.to_numpy()
        return array

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
    from gossamer.operator_calls.operands.checked_operands import kernel_arguments, kernel_request
    from gossamer.operator_calls.operator_kernels import kernel_for
    from gossamer.operators.matmul_24 import PROGRAM, operands

    checked = operands(*case.operands)
    kernel = kernel_for(kernel_request(checked, PROGRAM), target=target).kernel
    arguments = kernel_arguments(checked, PROGRAM, out)
    on_device = {
        name: placed(value) for name, value in arguments.items() if name in ("a", "indices", "b")
    }
    return kernel.bind(**{**arguments, **on_device})


def result_dtype(case: OperatorCase) -> np.dtype[Any]:
    """Return the dtype of the result: that in which products are added."""
    if case.op != MATMUL_24:
        dtype: np.dtype[Any] = case.dtype
        return dtype
    # Interpreters of other contenders have no gossamer.
    from gossamer_ir.core.dtypes import SUM_DTYPES

    return np.dtype(SUM_DTYPES[str(case.operands[0].dtype)])


def _torch() -> Any:
    import torch

    if not torch.cuda.is_available():
        raise UnavailableError("torch finds no GPU")
    return torch


def prepare_torch(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSE by PyTorch for sparse operators, cuBLAS for the dense product of a 2:4 matrix."""
    torch = _torch()
    operands = [torch.from_numpy(operand).cuda() for operand in case.operands]
    if case.op == MATMUL_24:
        return _torch_prepared(torch, lambda: torch.matmul(*operands))
    from benchmarks.contenders import torch as torch_on_cpu

    csr = case.csr
    arrays = [torch.from_numpy(each).cuda() for each in (csr.indptr, csr.indices, csr.data)]
    matrix = torch.sparse_csr_tensor(*arrays, size=csr.shape)
    out = torch.zeros(case.result_shape, dtype=arrays[2].dtype, device="cuda")
    call, _ = torch_on_cpu.CALLS[case.op](matrix, operands, out)

    def called() -> Any:
        call()
        return matrix.values() if case.op == "sddmm" else out

    return _torch_prepared(torch, called)


def prepare_cusparselt(case: OperatorCase, _target: str) -> GpuPrepared:
    """cuSPARSELt by PyTorch, with the algorithm that its search finds."""
    if case.op != MATMUL_24:
        raise UnavailableError("cuSPARSELt multiplies 2:4 matrices only")
    torch = _torch()
    left, right = (torch.from_numpy(operand).cuda() for operand in case.operands)
    compressed = torch._cslt_compress(left)
    algorithm = torch._cslt_sparse_mm_search(compressed, right)
    return _torch_prepared(
        torch, lambda: torch._cslt_sparse_mm(compressed, right, alg_id=algorithm)
    )


def _torch_prepared(torch: Any, call: Callable[[], Any]) -> GpuPrepared:
    def result() -> Array:
        array: Array = call().float().cpu().numpy()
        return array

    return GpuPrepared(call, result, torch_clock(torch))


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
    "cusparselt": prepare_cusparselt,
    "cupy": prepare_cupy,
}
