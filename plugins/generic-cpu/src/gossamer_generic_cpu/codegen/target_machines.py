"""LLVM's triple and target machine for a target, on any machine."""

from __future__ import annotations

import llvmlite.binding as llvm

from gossamer_generic_cpu.target.cpus import architecture_of, is_cross_compiled, resolve_cpu
from gossamer_host_runtime import target_machine, triple
from gossamer_ir.interchange.records import Target


def triple_of(target: Target) -> str:
    """Return the triple of a target: that of this process, or of Linux on another architecture.

    >>> triple_of(Target.parse("generic-cpu")) == triple()
    True
    """
    if not is_cross_compiled(target):
        return triple()
    # Imported late: most kernels are for this machine.
    from gossamer_generic_cpu.target.cpu_tables import CPU_TABLES

    return CPU_TABLES[architecture_of(target)].triple


def target_machine_of(target: Target) -> llvm.TargetMachine:
    """Return a target machine for position-independent code, which can be both exported and loaded."""
    cpu = resolve_cpu(target)
    if not is_cross_compiled(target):
        return target_machine(cpu)
    # Imported late: most kernels are for this machine.
    from gossamer_llvm.target_machines import cross_target_machine

    return cross_target_machine(triple_of(target), cpu=cpu.name, features=cpu.features)
