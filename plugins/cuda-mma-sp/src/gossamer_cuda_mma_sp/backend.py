"""The backend: PTX for NVIDIA GPUs, compiled on any machine."""

from __future__ import annotations

from gossamer_backend.plugin_api import (
    API_VERSION,
    Artifact,
    Kernel,
    Probe,
    combined_version,
    require_compilable,
)
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_cuda_mma_sp.driver.missing import System, reason_against_loading
from gossamer_cuda_mma_sp.target.gpu import explicit_gpu_target, gpu_of, machine_of_gpu
from gossamer_ir import signature_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import EMITTED_CAPABILITIES
from gossamer_machine import Machine

_VERSIONED = ("gossamer-cuda-mma-sp", "gossamer-llvm", "llvmlite")
_GRID = frozenset({"thread_binding", "barrier", "scope.shared", "scope.fragment"})


class CudaBackend:
    """Compiles flat modules to PTX with LLVM, and loads them into an interpreter of PTX, not on a GPU yet.

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

    def probe(self, target: Target) -> Probe:
        """Return whether the target names a driver, else what the machine lacks. No library is loaded."""
        try:
            resolved = explicit_gpu_target(target)
        except ArgumentError as error:
            return Probe.of_error(error)
        if gpu_of(target).driver:
            return Probe(usable=True, resolved=resolved)
        return Probe(usable=False, reason=reason_against_loading(System()), resolved=resolved)

    def machine(self, target: Target) -> Machine:
        """Return the machine of a target, which runs grids of threads."""
        return machine_of_gpu(target)

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module to PTX.

        `UnsupportedError` (`llvm.<construct>`) names a construct that is not lowered, `ArgumentError` an
        unknown option.
        """
        from gossamer_cuda_mma_sp.codegen import ptx
        from gossamer_llvm import guarded_buffers

        require_compilable(self, module, target)
        gpu = gpu_of(target)
        split = ptx.split_module(module, gpu)
        return Artifact(
            backend=self.name,
            backend_version=self.version,
            target=explicit_gpu_target(target),
            signature=signature_of(module, space="host" if gpu.driver else "global"),
            code=DeviceCode(ptx.ptx_text(split, gpu), split).encode(),
            guarded=guarded_buffers(ptx.kernels_of(split)),
            metadata=(("architecture", gpu.architecture.name), ("ptx", gpu.ptx)),
        )

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the LLVM IR of a flat module as it is emitted, and its PTX."""
        from gossamer_cuda_mma_sp.codegen import ptx

        gpu = gpu_of(target)
        split = ptx.split_module(module, gpu)
        return {"llvm": ptx.device_text(split, gpu), "asm": ptx.ptx_text(split, gpu)}

    def load(self, artifact: Artifact) -> Kernel:
        """Load a kernel into the interpreter of PTX, if the target says so. It runs on arrays of NumPy, which
        are copied to the interpreter and back.

        `ArgumentError` (`cuda.load`) for other targets: kernels are not loaded on a GPU yet.
        """
        if gpu_of(artifact.parsed_target()).driver:
            from gossamer_cuda_mma_sp.driver.copying_kernel import copying_kernel
            from gossamer_cuda_mma_sp.driver.interpreter_driver import InterpreterDriver

            return copying_kernel(artifact, InterpreterDriver())
        raise ArgumentError(
            "cuda.load",
            f"The kernel '{artifact.signature.entry}' cannot run here. {reason_against_loading(System())}",
            hint="Give the target driver=interpreter, or use generic-cpu.",
        )
