"""Compile a flat module to LLVM IR, assembly and object code for AArch64, on any machine."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from gossamer_ir.core.dtypes import VSCALE_UNIT_BITS
from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.nodes import Module
from gossamer_llvm import Abi, emit
from gossamer_llvm.optimization import optimize, parse
from gossamer_llvm_sve.machine import VECTOR_LENGTHS, Machine

TRIPLE = "aarch64-unknown-linux-gnu"


def emitted_text(module: Module, machine: Machine) -> str:
    """Return the LLVM IR of a flat module as it is emitted, before any pass."""
    return emit(module, abi=_abi(machine))


def emitted_assembly(module: Module, machine: Machine) -> str:
    """Return the assembly of a flat module."""
    return str(_target_machine(machine).emit_assembly(_optimized(module, machine)))


def emitted_object(module: Module, machine: Machine) -> bytes:
    """Compile a flat module to an object file that exports `gossamer_kernel`."""
    return bytes(_target_machine(machine).emit_object(_optimized(module, machine)))


def _optimized(module: Module, machine: Machine) -> llvm.ModuleRef:
    parsed = parse(emitted_text(module, machine))
    optimize(parsed, _target_machine(machine))
    return parsed


@cache
def _abi(machine: Machine) -> Abi:
    least, most = (bits // VSCALE_UNIT_BITS for bits in (machine.vl_min, VECTOR_LENGTHS[-1]))
    return Abi(
        triple=TRIPLE,
        data_layout=str(_target_machine(machine).target_data),
        functions=INSTRUCTIONS,
        scalable=True,
        half_conversions=True,
        attributes=(f"vscale_range({least},{most})",),
    )


@cache
def _target_machine(machine: Machine) -> llvm.TargetMachine:
    """Return a target machine for position-independent code of `-O2`, which can be exported."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(
        cpu=machine.cpu, features=machine.llvm_features, opt=2, reloc="pic", codemodel="default"
    )
