"""The backend: all CPUs that LLVM supports. Code for other architectures runs under emulation."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_backend.plugin_api import (
    API_VERSION,
    Artifact,
    Kernel,
    Probe,
    errors_are_reasons,
    require_compilable,
)
from gossamer_generic_cpu.version import plugin_version
from gossamer_ir import signature_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import EMITTED_CAPABILITIES
from gossamer_machine import Machine, machine_of

NAME = "generic-cpu"
_NO_EMULATOR = "Only kernels for aarch64 and riscv64 are emulated."


class GenericCpu:
    """Compiles flat modules with LLVM for this machine's CPU or a named one (`arch=`, `cpu=`). Kernels run on
    `threads=` threads; those for another architecture are emulated, on one thread."""

    name = NAME
    api_version = API_VERSION
    capabilities = EMITTED_CAPABILITIES

    @property
    def version(self) -> str:
        return plugin_version()

    def targets(self) -> tuple[str, ...]:
        """Return the target for the CPU of this machine, one for a common CPU, and two architectures."""
        from gossamer_host_runtime import architecture

        x86 = "cpu=x86-64-v3" if architecture() == "x86_64" else "arch=x86-64,cpu=x86-64-v3"
        return (NAME, f"{NAME}:{x86}", f"{NAME}:arch=aarch64", f"{NAME}:arch=riscv64")

    def instructions(self, target: Target) -> frozenset[str]:
        """Return the functions for which the target's CPU has instructions."""
        from gossamer_generic_cpu.codegen import compiler

        return compiler.target_info_of(target).functions

    @errors_are_reasons
    def probe(self, target: Target) -> Probe:
        """Return whether this machine has the features of the target's CPU, or can emulate it."""
        from gossamer_generic_cpu.target import cpus

        required = frozenset() if cpus.is_host(target) else cpus.resolve_cpu(target).required
        if cpus.is_cross_compiled(target):
            return _cross_compiled_probe(target)
        missing = cpus.missing_features(required)
        if missing:
            return Probe(is_usable=False, reason=f"This CPU lacks {', '.join(missing)}.")
        return Probe(is_usable=True, resolved=cpus.explicit_cpu_target(target))

    def machine(self, target: Target) -> Machine:
        """Return the machine that the options of a resolved target describe."""
        from gossamer_generic_cpu.target import cpus
        from gossamer_generic_cpu.target.vectors import vector_registers

        machine, architecture = machine_of(target), cpus.architecture_of(target)
        features = cpus.resolve_cpu(target).required if architecture == "riscv64" else frozenset()
        registers = vector_registers(
            machine.min_vector_bits, architecture=architecture, features=features
        )
        return replace(machine, vector_registers=registers)

    def compile(self, module: Module, target: Target) -> Artifact:
        """Compile a flat module to object code; the CPU of this machine does not matter.

        `UnsupportedError` (`llvm.<construct>`) names a construct that is not lowered, `ArgumentError` an
        unknown option.
        """
        from gossamer_generic_cpu.codegen import compiler
        from gossamer_generic_cpu.codegen.target_machines import triple_of
        from gossamer_generic_cpu.target import cpus
        from gossamer_llvm import bounds_checked_buffers

        require_compilable(self, module, target)
        cpu = cpus.resolve_cpu(target)
        compiled = compiler.object_code(module, target)
        facts = {
            "triple": triple_of(target),
            "cpu": cpu.name,
            "features": " ".join(sorted(cpu.required)),
        }
        return Artifact(
            backend=self.name,
            backend_version=self.version,
            target=cpus.explicit_cpu_target(target),
            signature=signature_of(module),
            code=compiled.code,
            bounds_checked_buffers=bounds_checked_buffers(module),
            metadata=(*facts.items(), *compiled.times),
        )

    def texts(self, module: Module, target: Target) -> dict[str, str]:
        """Return the LLVM IR of a flat module as it is emitted, and its assembly."""
        from gossamer_generic_cpu.codegen import compiler

        llvm, asm = compiler.llvm_text(module, target), compiler.assembly(module, target)
        return {"llvm": llvm, "asm": asm}

    def load(self, artifact: Artifact) -> Kernel:
        """Link object code into this process, or send it to an emulated process if it is for another
        architecture.

        `ArgumentError` (`generic_cpu.load`) if this machine lacks a feature that the code may use, or its
        architecture is not emulated; `emulation.programs` if the emulator or the cross compiler is absent.
        """
        if artifact.parsed_target().option("arch"):
            from gossamer_generic_cpu.target.cpus import is_cross_compiled

            if is_cross_compiled(artifact.parsed_target()):
                return _emulated_kernel(artifact)
        from gossamer_host_runtime import load_kernel

        # Before the code is mapped: an instruction that the CPU lacks ends the process.
        lacking = _missing_features(artifact)
        if lacking:
            raise ArgumentError(
                "generic_cpu.load",
                f"This machine cannot run code for '{artifact.target}': "
                f"it lacks {', '.join(lacking)}.",
                hint="Compile for cpu=host.",
            )
        return load_kernel(artifact)


def _cross_compiled_probe(target: Target) -> Probe:
    from gossamer_emulation import reason_against_emulation
    from gossamer_generic_cpu.target import cpus
    from gossamer_generic_cpu.target.emulation import emulated_machine

    machine = emulated_machine(target)
    reason = reason_against_emulation(machine.architecture) if machine else _NO_EMULATOR
    return Probe(is_usable=reason is None, reason=reason, resolved=cpus.explicit_cpu_target(target))


def _emulated_kernel(artifact: Artifact) -> Kernel:
    from gossamer_emulation import emulated_kernel
    from gossamer_generic_cpu.target.emulation import emulated_machine

    machine = emulated_machine(artifact.parsed_target())
    if machine is None:
        raise ArgumentError(
            "generic_cpu.load",
            f"This machine cannot run code for '{artifact.target}'. {_NO_EMULATOR}",
            hint="Export the kernel, and call it from C on a machine of its architecture.",
        )
    return emulated_kernel(artifact, machine)


def _missing_features(artifact: Artifact) -> tuple[str, ...]:
    """Return the features that the code may use and this machine lacks, or the triple if it is another
    one."""
    from gossamer_generic_cpu.target import cpus
    from gossamer_host_runtime import host

    # Compiled on this machine: decided without LLVM, whose import takes longer than loading the kernel.
    if artifact.parsed_target().option("features") == host().digest:
        return ()
    from gossamer_host_runtime import triple  # LLVM

    if artifact.metadatum("triple") != triple():
        return (artifact.metadatum("triple"),)
    return cpus.missing_features(frozenset(artifact.metadatum("features").split()))
