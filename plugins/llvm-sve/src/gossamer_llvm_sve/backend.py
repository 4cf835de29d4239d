"""The backend: code for CPUs with scalable vectors, compiled on any machine, and run natively or emulated."""

from __future__ import annotations

from gossamer_backend.plugin_api import (
    API_VERSION,
    Artifact,
    Kernel,
    Probe,
    combined_version,
    errors_are_reasons,
    require_compilable,
)
from gossamer_ir import signature_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import EMITTED_CAPABILITIES
from gossamer_llvm_sve.machine import cpu_of, explicit_target, machine_of_cpu
from gossamer_llvm_sve.native import reason_against_native
from gossamer_llvm_sve.vector_extension import VectorExtension
from gossamer_machine import Machine
from gossamer_support.typed_calls import typed

_VERSIONED = ("gossamer-llvm-sve", "gossamer-llvm", "llvmlite")


class ScalableBackend:
    """Compiles flat modules with LLVM for an extension for scalable vectors. Kernels run on `threads=`
    threads of a process of its architecture, and elsewhere on one thread of an emulated process.

    >>> from gossamer_llvm_sve.vector_extension import RVV
    >>> ScalableBackend(RVV).targets()
    ('llvm-rvv', 'llvm-rvv:cpu=sifive-x280')
    """

    api_version = API_VERSION

    @typed
    def __init__(self, extension: VectorExtension) -> None:
        self.name = extension.backend
        self._extension = extension
        scopes = {f"scope.{name}" for name in extension.scopes}
        self.capabilities = EMITTED_CAPABILITIES | scopes | {"vectors.scalable"}

    @property
    def version(self) -> str:
        """The versions of the plugin, of the emitter and of llvmlite, which contains LLVM."""
        return combined_version(*_VERSIONED)

    def targets(self) -> tuple[str, ...]:
        """Return the target for all CPUs with the extension, and that for one CPU."""
        return (self.name, f"{self.name}:cpu={self._extension.cpus[1].name}")

    @errors_are_reasons
    def probe(self, target: Target) -> Probe:
        """Return whether this machine can run kernels: it has the extension, or an emulator and a cross
        compiler."""
        from gossamer_emulation import reason_against_emulation

        cpu, resolved = cpu_of(target), explicit_target(target)
        if self._extension.is_native:
            reason = reason_against_native(cpu)
        else:
            reason = reason_against_emulation(self._extension.architecture)
        return Probe(is_usable=reason is None, reason=reason, resolved=resolved)

    def machine(self, target: Target) -> Machine:
        """Return the machine of a target, whose vectors are scalable."""
        return machine_of_cpu(target)

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module to object code for the architecture.

        `UnsupportedError` (`llvm.<construct>`) names a construct that is not lowered, `ArgumentError` an
        unknown option.
        """
        from gossamer_llvm import bounds_checked_buffers
        from gossamer_llvm_sve import codegen

        require_compilable(self, module, target)
        cpu = cpu_of(target)
        features = " ".join(cpu.features)
        return Artifact(
            backend=self.name,
            backend_version=self.version,
            target=explicit_target(target),
            signature=signature_of(module),
            code=codegen.emit_object(module, cpu),
            bounds_checked_buffers=bounds_checked_buffers(module),
            metadata=(("triple", self._extension.architecture.triple), ("features", features)),
        )

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the LLVM IR of a flat module as it is emitted, and its assembly."""
        from gossamer_llvm_sve import codegen

        cpu = cpu_of(target)
        return {
            "llvm": codegen.emitted_text(module, cpu),
            "asm": codegen.emitted_assembly(module, cpu),
        }

    def load(self, artifact: Artifact) -> Kernel:
        """Link object code into this process if it is one of its architecture; else send it to an emulated
        process, which all kernels of one vector length share.

        `ArgumentError` (`scalable_cpu.load`) if a machine of this architecture lacks a feature that the code
        needs, or has shorter vectors; `emulation.programs` if the emulator or the cross compiler is absent.
        """
        from gossamer_emulation import emulated_kernel
        from gossamer_host_runtime import load_kernel

        cpu = cpu_of(artifact.parsed_target())
        if not self._extension.is_native:
            return emulated_kernel(artifact, cpu.emulated_machine)
        # Before the code is mapped: an instruction that the CPU lacks ends the process.
        reason = reason_against_native(cpu)
        if reason is not None:
            raise ArgumentError(
                "scalable_cpu.load",
                f"The kernel '{artifact.signature.entry}' cannot run here. {reason}",
                hint="Compile it for cpu=generic and a smaller min_vector_bits, or use generic-cpu.",
            )
        return load_kernel(artifact)
