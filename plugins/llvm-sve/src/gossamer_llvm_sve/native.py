"""Kernels in a process of AArch64: whether the CPU of this machine runs the code of a target."""

from __future__ import annotations

from collections.abc import Set

from gossamer_host_runtime import architecture, host, sve_vector_bits
from gossamer_llvm_sve.machine import ScalableCpu
from gossamer_llvm_sve.vector_extension import VectorExtension


def is_native(extension: VectorExtension) -> bool:
    """Return whether this process is one of the architecture, and kernels are loaded and not emulated."""
    return extension.runs_natively and architecture() == extension.architecture.name


def reason_against_native(cpu: ScalableCpu) -> str | None:
    """Return a sentence on what this machine lacks to run the code of a target, None if it lacks nothing."""
    return reason_against_cpu(cpu, vector_bits=sve_vector_bits(), features=host().features)


def reason_against_cpu(
    cpu: ScalableCpu, *, vector_bits: int | None, features: Set[str]
) -> str | None:
    """Return what a machine with these features lacks, whose vectors of SVE have a length in bits.

    >>> from gossamer_ir.interchange.records import Target
    >>> from gossamer_llvm_sve.machine import cpu_of
    >>> cpu = cpu_of(Target.parse("llvm-sve:vl_min=512"))
    >>> reason_against_cpu(cpu, vector_bits=256, features={"sve"})
    'The vectors of this CPU have 256 bits, and the code relies on 512 (vl_min=512).'
    """
    if vector_bits is None:
        return "This CPU has no vectors of SVE, or the system does not let processes use them."
    missing = sorted(cpu.required - features)
    if missing:
        return f"This CPU lacks {', '.join(missing)}."
    if cpu.vl_min > vector_bits:
        return (
            f"The vectors of this CPU have {vector_bits} bits, and the code relies on {cpu.vl_min} "
            f"(vl_min={cpu.vl_min})."
        )
    return None
