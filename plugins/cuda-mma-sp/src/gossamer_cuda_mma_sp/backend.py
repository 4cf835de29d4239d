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
from gossamer_cuda_mma_sp.driver.missing import System, reason_against_loading
from gossamer_cuda_mma_sp.target.gpu import explicit_gpu_target, gpu_of, machine_of_gpu
from gossamer_ir import signature_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import EMITTED_CAPABILITIES
from gossamer_machine import Machine

_VERSIONED = ("gossamer-cuda-mma-sp", "gossamer-llvm", "llvmlite")
_NOT_ON_A_DEVICE = frozenset({"parallel", "launch", "prefetch"})
"""What the emitter has for hosts only."""


class CudaBackend:
    """Compiles flat modules to PTX with LLVM. So far it compiles programs that one thread runs, and loads no
    kernels.

    >>> CudaBackend().targets()
    ('cuda-mma-sp', 'cuda-mma-sp:arch=sm_90')
    """

    api_version = API_VERSION
    name = "cuda-mma-sp"
    capabilities = EMITTED_CAPABILITIES - _NOT_ON_A_DEVICE

    @property
    def version(self) -> str:
        """The versions of the plugin, of the emitter and of llvmlite, which contains LLVM."""
        return combined_version(*_VERSIONED)

    def targets(self) -> tuple[str, ...]:
        """Return the target for most GPUs, and that for Hopper."""
        return (self.name, f"{self.name}:arch=sm_90")

    def probe(self, target: Target) -> Probe:
        """Return that this machine cannot run kernels, and what it lacks. No driver is loaded."""
        try:
            resolved = explicit_gpu_target(target)
        except ArgumentError as error:
            return Probe.of_error(error)
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
        return Artifact(
            backend=self.name,
            backend_version=self.version,
            target=explicit_gpu_target(target),
            signature=signature_of(module, space="global"),
            code=ptx.ptx_text(module, gpu).encode(),
            guarded=guarded_buffers(module),
            metadata=(("architecture", gpu.architecture.name), ("ptx", gpu.ptx)),
        )

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the LLVM IR of a flat module as it is emitted, and its PTX."""
        from gossamer_cuda_mma_sp.codegen import ptx

        gpu = gpu_of(target)
        return {"llvm": ptx.device_text(module, gpu), "asm": ptx.ptx_text(module, gpu)}

    def load(self, artifact: Artifact) -> Kernel:
        """Raise `ArgumentError` (`cuda.load`): kernels are not loaded yet."""
        raise ArgumentError(
            "cuda.load",
            f"The kernel '{artifact.signature.entry}' cannot run here. {reason_against_loading(System())}",
            hint="Export it, or use generic-cpu.",
        )
