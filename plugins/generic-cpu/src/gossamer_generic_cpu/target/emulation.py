"""The emulated machine that code for another architecture runs on."""

from __future__ import annotations

from gossamer_emulation import AARCH64, RISCV64, EmulatedMachine
from gossamer_generic_cpu.target.cpus import architecture_of, resolve_cpu
from gossamer_ir.interchange.records import Target

_VECTORS = "v=true,vext_spec=v1.0,vlen=128"


def emulated_machine(target: Target) -> EmulatedMachine | None:
    """Return a machine with the features of a target's CPU, None if its architecture is not emulated.

    >>> emulated_machine(Target.parse("generic-cpu:arch=riscv64,features=v")).cpu
    'rv64,v=true,vext_spec=v1.0,vlen=128'
    """
    match architecture_of(target):
        case "aarch64":
            return EmulatedMachine(AARCH64, "max")
        case "riscv64":
            has_vectors = "v" in resolve_cpu(target).required
            return EmulatedMachine(RISCV64, f"rv64,{_VECTORS}" if has_vectors else "rv64")
    return None
