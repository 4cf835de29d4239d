"""Kernels in a process of the architecture they are for: whether the CPU of this machine runs their code."""

from __future__ import annotations

from collections.abc import Set

from gossamer_host_runtime import host, scalable_vector_bits
from gossamer_llvm_sve.machine import ScalableCpu


def reason_against_native(cpu: ScalableCpu) -> str | None:
    """Return a sentence on what this machine lacks to run the code of a target, None if it lacks nothing."""
    return reason_against_cpu(cpu, vector_bits=scalable_vector_bits(), features=host().features)


def reason_against_cpu(
    cpu: ScalableCpu, *, vector_bits: int | None, features: Set[str]
) -> str | None:
    """Return what a machine with these features lacks, whose scalable vectors have a length in bits.

    >>> from gossamer_ir.interchange.records import Target
    >>> from gossamer_llvm_sve.machine import cpu_of
    >>> cpu = cpu_of(Target.parse("llvm-sve:min_vector_bits=512"))
    >>> reason_against_cpu(cpu, vector_bits=256, features={"sve"})
    'The vectors of this CPU have 256 bits, and the code relies on 512 (min_vector_bits=512).'
    """
    if vector_bits is None:
        title = cpu.extension.title
        return f"This CPU has no vectors of {title}, or the system does not let processes use them."
    missing = sorted(cpu.required_features - features)
    if missing:
        return f"This CPU lacks {', '.join(missing)}."
    if cpu.min_vector_bits > vector_bits:
        return (
            f"The vectors of this CPU have {vector_bits} bits, and the code relies on "
            f"{cpu.min_vector_bits} (min_vector_bits={cpu.min_vector_bits})."
        )
    return None
