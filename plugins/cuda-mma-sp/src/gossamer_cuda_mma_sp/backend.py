"""The backend: PTX for NVIDIA GPUs, compiled on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gossamer_backend.plugin_api import (
    API_VERSION,
    Artifact,
    Device,
    ExportParts,
    Kernel,
    Probe,
    combined_version,
    errors_are_reasons,
    require_compilable,
)
from gossamer_cuda_mma_sp.device_code import DeviceCode, kernels_of
from gossamer_cuda_mma_sp.intrinsics.product_intrinsics import n_m_tiles_of, products_of
from gossamer_cuda_mma_sp.target.architectures import NATIVE_ARCH
from gossamer_cuda_mma_sp.target.gpu import (
    DEVICE_KIND,
    Gpu,
    explicit_gpu_target,
    gpu_of,
    machine_of_gpu,
)
from gossamer_ir import scratch_layout, signature_of
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import Signature, Target
from gossamer_ir.nodes import Module
from gossamer_llvm import EMITTED_CAPABILITIES
from gossamer_machine import Machine
from gossamer_support.arrays import Array

if TYPE_CHECKING:
    import numpy as np

    from gossamer_cuda_mma_sp.device.device_array import DeviceArray
    from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice

_VERSIONED = ("gossamer-cuda-mma-sp", "gossamer-llvm", "llvmlite")
_GRID = frozenset(
    {"thread_binding", "barrier", "shuffle", "scope.shared", "scope.fragment", "async_copy"}
)


class CudaBackend:
    """Compiles flat modules to PTX with LLVM, and loads them on a GPU or into an interpreter of PTX.

    >>> CudaBackend().targets()
    ('cuda-mma-sp', 'cuda-mma-sp:driver=interpreter')
    """

    api_version = API_VERSION
    name = "cuda-mma-sp"
    capabilities = EMITTED_CAPABILITIES | _GRID

    @property
    def version(self) -> str:
        """The versions of the plugin, of the emitter and of llvmlite, which contains LLVM."""
        return combined_version(*_VERSIONED)

    def targets(self) -> tuple[str, ...]:
        """Return the target for most GPUs, and that whose kernels are interpreted here."""
        return (self.name, f"{self.name}:driver=interpreter")

    @errors_are_reasons
    def probe(self, target: Target) -> Probe:
        """Return whether the driver of the target works here and takes its code, else what is missing: a
        package, the library of the driver, a GPU, or a later version."""
        target = _name_architecture(target)
        gpu, resolved = gpu_of(target), explicit_gpu_target(target)
        if gpu.is_interpreted:
            return Probe(is_usable=True, resolved=resolved)
        try:
            _open_device(gpu)
        except ArgumentError as error:
            return Probe(is_usable=False, reason=Probe.from_error(error).reason, resolved=resolved)
        return Probe(is_usable=True, resolved=resolved)

    def machine(self, target: Target) -> Machine:
        """Return the machine of a target, which runs grids of threads."""
        target = _name_architecture(target)
        gpu = gpu_of(target)
        return replace(
            machine_of_gpu(target),
            block_products=products_of(gpu, is_sparse=False),
            n_m_products=products_of(gpu, is_sparse=True),
            n_m_tiles=n_m_tiles_of(gpu),
        )

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module to PTX.

        `UnsupportedError` (`llvm.<construct>`) names a construct that is not lowered, `ArgumentError` an
        unknown option.
        """
        from gossamer_cuda_mma_sp.codegen import ptx
        from gossamer_llvm import bounds_checked_buffers

        require_compilable(self, module, target)
        target = _name_architecture(target)
        gpu = gpu_of(target)
        split = ptx.split_module(module, gpu)
        return Artifact(
            backend=self.name,
            backend_version=self.version,
            target=explicit_gpu_target(target),
            signature=_signature(module, split, gpu),
            code=DeviceCode(ptx.ptx_text(split, gpu), split).encode(),
            bounds_checked_buffers=bounds_checked_buffers(kernels_of(split)),
            metadata=(("architecture", gpu.architecture.name), ("ptx", gpu.ptx)),
        )

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the LLVM IR of a flat module as it is emitted, its PTX, which is its assembly, and its
        kernels as CUDA C++."""
        from gossamer_cuda_mma_sp.codegen import ptx

        gpu = gpu_of(_name_architecture(target))
        split = ptx.split_module(module, gpu)
        text = ptx.ptx_text(split, gpu)
        return {
            "llvm": ptx.device_text(split, gpu),
            "asm": text,
            "ptx": text,
            "cuda": _cuda_text(split),
        }

    def export_parts(self, artifact: Artifact, *, symbol: str) -> ExportParts:
        """Return the PTX of an artifact, its machine code if `ptxas` is found, and what a caller needs to
        launch its kernels."""
        from gossamer_cuda_mma_sp.export.exported_kernels import exported_kernels

        return exported_kernels(artifact, symbol)

    def load(self, artifact: Artifact) -> Kernel:
        """Load a kernel on the GPU of the target, or into the interpreter of PTX. It takes arrays of the GPU;
        with `host_arrays=copy`, and in the interpreter, arrays of NumPy, which are copied there and back.

        `ArgumentError`: `cuda.driver` says what this machine lacks, `cuda.device` that it has another GPU.
        """
        gpu = gpu_of(artifact.parsed_target())
        if gpu.is_interpreted:
            from gossamer_cuda_mma_sp.device.copying_kernel import copying_kernel
            from gossamer_cuda_mma_sp.device.gpu_device import GpuDevice
            from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver

            return copying_kernel(artifact, GpuDevice(InterpreterDriver()))
        device = _open_device(gpu)
        if gpu.copies:
            from gossamer_cuda_mma_sp.device.copying_kernel import copying_kernel

            return copying_kernel(artifact, device)
        from gossamer_cuda_mma_sp.device.device_kernel import DeviceKernel

        return DeviceKernel(artifact, device)

    def device_target(self, device: Device) -> str | None:
        """Return the target for arrays of a GPU: its architecture, with all instructions.

        >>> CudaBackend().device_target(Device(2, 1)), CudaBackend().device_target(Device(1, 0))
        ('cuda-mma-sp:arch=native,device=1', None)
        """
        if device.kind != DEVICE_KIND:
            return None
        return f"{self.name}:arch={NATIVE_ARCH},device={device.number}"

    def new_array(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], *, device: Device
    ) -> DeviceArray:
        """Return a new array on a GPU, for its default stream."""
        from gossamer_cuda_mma_sp.device.device_array import DeviceArray
        from gossamer_cuda_mma_sp.device.gpu_device import gpu_device

        return DeviceArray(shape, dtype, gpu_device(None, device.number))

    def to_device(self, array: Array, *, device: Device) -> DeviceArray:
        """Return a copy of an array of NumPy on a GPU."""
        copy = self.new_array(array.shape, array.dtype, device=device)
        copy.copy_from(array)
        return copy


def _name_architecture(target: Target) -> Target:
    """Return a target that names its architecture, which the driver says for `arch=native`."""
    if target.option("arch") != NATIVE_ARCH:
        return target
    from gossamer_cuda_mma_sp.device.native_architecture import with_native_architecture

    return with_native_architecture(target)


def _open_device(gpu: Gpu) -> GpuDevice:
    """Return the GPU of a target, if it takes code for the target."""
    from gossamer_cuda_mma_sp.device.gpu_device import gpu_device
    from gossamer_cuda_mma_sp.device.suitable_device import require_suitable

    device = gpu_device(gpu.driver, gpu.number)
    require_suitable(gpu, device.limits)
    return device


def _signature(module: Module, split: Module, gpu: Gpu) -> Signature:
    if gpu.copies:
        return signature_of(module)
    return signature_of(module, space="global", scratch=scratch_layout(split).size)


def _cuda_text(split: Module) -> str:
    """Return the kernels of a split module as CUDA C++, or why there is no such text."""
    from gossamer_cuda_mma_sp.cuda_cpp.print_cuda import print_cuda

    try:
        return print_cuda(kernels_of(split), DeviceCode("", split).symbols)
    except UnsupportedError as error:
        return "\n".join(f"// {line}" for line in str(error).splitlines())
