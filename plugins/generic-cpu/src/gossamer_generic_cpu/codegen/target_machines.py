"""LLVM's triple and target machine for a target, on any machine."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from gossamer_generic_cpu.target.cpu_tables import CPU_TABLES
from gossamer_generic_cpu.target.cpus import architecture_of, is_cross_compiled, resolve_cpu
from gossamer_host_runtime import Cpu, target_machine, triple
from gossamer_ir.interchange.records import Target


def triple_of(target: Target) -> str:
    """Return the triple of a target: that of this process, or of Linux on another architecture.

    >>> triple_of(Target.parse("generic-cpu")) == triple()
    True
    """
    return CPU_TABLES[architecture_of(target)].triple if is_cross_compiled(target) else triple()


def target_machine_of(target: Target) -> llvm.TargetMachine:
    """Return a target machine for position-independent code, which can be both exported and loaded."""
    cpu = resolve_cpu(target)
    return (
        _cross_machine(cpu, triple_of(target)) if is_cross_compiled(target) else target_machine(cpu)
    )


@cache
def _cross_machine(cpu: Cpu, triple_text: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple_text)
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=2, reloc="pic", codemodel="default"
    )
