"""Compile a flat module to LLVM IR, assembly and object code."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import msgspec

import gossamer_llvm
from gossamer_generic_cpu.codegen.single_lane_stores import (
    has_stores_to_scalarize,
    scalarize_single_lane_stores,
)
from gossamer_generic_cpu.codegen.target_machines import target_machine_of, triple_of
from gossamer_generic_cpu.target.cpus import architecture_of, gathers_of, resolve_cpu
from gossamer_ir.core.math_functions import INSTRUCTIONS, instructions_with
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import INSERTED_LANES, TargetInfo, TargetLowering, emit_llvm_ir
from gossamer_llvm.optimization import optimize, parse

# An attribute of the package, which imports an export when it is first used.
CPU_LOWERINGS: dict[str, Callable[[], TargetLowering]] = {
    "avx512f": lambda: gossamer_llvm.avx512_lowering()
}
"""The lowering to instructions of CPUs with a feature; a CPU has the first whose feature it has."""


class Compiled(msgspec.Struct, frozen=True):
    """Object code, and the time of each step in milliseconds."""

    code: bytes
    times: tuple[tuple[str, str], ...]


@cache
def target_info_of(target: Target) -> TargetInfo:
    """Return the properties of a target that the emitter needs."""
    features, architecture = resolve_cpu(target).required, architecture_of(target)
    # The base instruction set of AArch64 has all functions. LLVM computes those that RISC-V lacks inline.
    has_all = architecture in ("aarch64", "riscv64")
    return TargetInfo(
        triple=triple_of(target),
        data_layout=str(target_machine_of(target).target_data),
        functions=INSTRUCTIONS if has_all else instructions_with(features),
        has_half_conversions=architecture == "aarch64" or "f16c" in features,
        has_costly_masks=architecture == "x86_64" and "avx512f" not in features,
        inserted_lanes=1 if gathers_of(target) == "fast" else INSERTED_LANES,
        attributes=('"prefer-vector-width"="512"',),
    )


def llvm_text(module: Module, target: Target) -> str:
    """Return the LLVM IR of a flat module as it is emitted, before any pass."""
    return emit_llvm_ir(module, target_info=target_info_of(target), lowering=_lowering_of(target))


def _lowering_of(target: Target) -> TargetLowering | None:
    features = resolve_cpu(target).required
    lowerings = (make for feature, make in CPU_LOWERINGS.items() if feature in features)
    return next((make() for make in lowerings), None)


def assembly(module: Module, target: Target) -> str:
    """Return the assembly of a flat module."""
    machine, text = target_machine_of(target), llvm_text(module, target)
    return str(machine.emit_assembly(_optimize(parse(text), text, machine)))


def object_code(module: Module, target: Target) -> Compiled:
    """Compile a flat module to an object file that exports `gossamer_kernel`."""
    machine = target_machine_of(target)
    marks = [time.perf_counter()]
    text = llvm_text(module, target)
    marks.append(time.perf_counter())
    parsed = parse(text)
    marks.append(time.perf_counter())
    parsed = _optimize(parsed, text, machine)
    marks.append(time.perf_counter())
    code = machine.emit_object(parsed)
    marks.append(time.perf_counter())
    steps = zip(("emit", "parse", "optimize", "codegen"), marks, marks[1:], strict=False)
    times = tuple((f"{step}_ms", f"{1000 * (end - start):.3f}") for step, start, end in steps)
    return Compiled(code, times)


def _optimize(parsed: llvm.ModuleRef, text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Return the optimized module that was parsed from a text."""
    optimize(parsed, machine)
    # A mask may become a constant only by optimization. Printing the module and searching it takes a tenth
    # of LLVM's time, so it is done only for stores of integers.
    if not has_stores_to_scalarize(text):
        return parsed
    before = str(parsed)
    after = scalarize_single_lane_stores(before)
    return parsed if after == before else parse(after)
