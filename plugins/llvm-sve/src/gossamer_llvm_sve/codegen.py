"""Compile flat modules to LLVM IR, assembly and object code for scalable vectors, on any machine."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from gossamer_ir.core.math_functions import INSTRUCTIONS
from gossamer_ir.nodes import Module
from gossamer_llvm import TargetInfo, TargetLowering, emit_llvm_ir, sme_lowering
from gossamer_llvm.optimization import optimize, parse
from gossamer_llvm.target_machines import cross_target_machine
from gossamer_llvm_sve.machine import ScalableCpu


def emitted_text(module: Module, cpu: ScalableCpu) -> str:
    """Return the LLVM IR of a flat module as it is emitted, before any pass."""
    return emit_llvm_ir(module, target_info=_target_info(cpu), lowering=_lowering(cpu))


def emitted_assembly(module: Module, cpu: ScalableCpu) -> str:
    """Return the assembly of a flat module."""
    return str(_target_machine(cpu).emit_assembly(_optimize(module, cpu)))


def emit_object(module: Module, cpu: ScalableCpu) -> bytes:
    """Compile a flat module to an object file that exports `gossamer_kernel`."""
    return bytes(_target_machine(cpu).emit_object(_optimize(module, cpu)))


def _optimize(module: Module, cpu: ScalableCpu) -> llvm.ModuleRef:
    parsed = parse(emitted_text(module, cpu))
    optimize(parsed, _target_machine(cpu))
    return parsed


@cache
def _target_info(cpu: ScalableCpu) -> TargetInfo:
    extension = cpu.extension
    least, most = (
        bits // extension.vscale_bits for bits in (cpu.min_vector_bits, extension.max_vector_bits)
    )
    return TargetInfo(
        triple=extension.architecture.triple,
        data_layout=str(_target_machine(cpu).target_data),
        functions=INSTRUCTIONS,
        is_scalable=True,
        vscale_bits=extension.vscale_bits,
        has_lane_masks=extension.has_lane_masks,
        has_lane_products=extension.has_lane_products,
        has_half_conversions=cpu.converts_half,
        has_displaced_indices=False,
        # The width of fetches differs among these CPUs.
        loop_alignment=0,
        attributes=(f"vscale_range({least},{most})",),
    )


def _lowering(cpu: ScalableCpu) -> TargetLowering | None:
    if not cpu.has_sme:
        return None
    # The length of vectors in streaming mode is independent of `min_vector_bits`.
    most = cpu.extension.max_vector_bits // cpu.extension.vscale_bits
    return sme_lowering(attributes=(f"vscale_range(1,{most})", '"aarch64_pstate_sm_body"'))


def _target_machine(cpu: ScalableCpu) -> llvm.TargetMachine:
    extension = cpu.extension
    return cross_target_machine(
        extension.architecture.triple,
        cpu=cpu.model.name,
        features=cpu.llvm_features,
        calling_convention=extension.calling_convention or "",
    )
