"""Compile a flat module to LLVM IR, assembly and object code."""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

import llvmlite.binding as llvm

from gossamer_generic_cpu.codegen.single_lane_stores import (
    has_stores_to_scalarize,
    scalarize_single_lane_stores,
)
from gossamer_generic_cpu.target.cpus import gathers_of, resolve_cpu
from gossamer_host_runtime import Cpu, architecture, data_layout, target_machine, triple
from gossamer_ir.core.math_functions import INSTRUCTIONS, instructions_with
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Module
from gossamer_llvm import INSERTED_LANES, Abi, emit
from gossamer_llvm.optimization import optimize, parse


class Compiled(NamedTuple):
    """Object code, and the time of each step in milliseconds."""

    code: bytes
    times: tuple[tuple[str, str], ...]


def abi_of(target: Target) -> Abi:
    """Return the properties of a target that the emitter needs."""
    return _abi(resolve_cpu(target), gathers_of(target))


@cache
def _abi(cpu: Cpu, gathers: str) -> Abi:
    # The base instruction set of AArch64 has all of these.
    has_all = architecture() == "aarch64"
    return Abi(
        triple=triple(),
        data_layout=data_layout(cpu),
        functions=INSTRUCTIONS if has_all else instructions_with(cpu.required),
        half_conversions=has_all or "f16c" in cpu.required,
        inserted_lanes=1 if gathers == "fast" else INSERTED_LANES,
        permuted_bytes=64 if "avx512f" in cpu.required else 0,
        attributes=('"prefer-vector-width"="512"',),
    )


def llvm_text(module: Module, target: Target) -> str:
    """Return the LLVM IR of a flat module as it is emitted, before any pass."""
    return emit(module, abi=abi_of(target))


def assembly(module: Module, target: Target) -> str:
    """Return the assembly of a flat module."""
    cpu = resolve_cpu(target)
    machine, text = target_machine(cpu), emit(module, abi=abi_of(target))
    return str(machine.emit_assembly(_optimized(parse(text), text, machine)))


def object_code(module: Module, target: Target) -> Compiled:
    """Compile a flat module to an object file that exports `gossamer_kernel`."""
    machine = target_machine(resolve_cpu(target))
    marks = [time.perf_counter()]
    text = emit(module, abi=abi_of(target))
    marks.append(time.perf_counter())
    parsed = parse(text)
    marks.append(time.perf_counter())
    parsed = _optimized(parsed, text, machine)
    marks.append(time.perf_counter())
    code = machine.emit_object(parsed)
    marks.append(time.perf_counter())
    steps = zip(("emit", "parse", "optimize", "codegen"), marks, marks[1:], strict=False)
    times = tuple((f"{step}_ms", f"{1000 * (end - start):.3f}") for step, start, end in steps)
    return Compiled(code, times)


def _optimized(parsed: llvm.ModuleRef, text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """Return the optimized module that was parsed from a text."""
    optimize(parsed, machine)
    # A mask may become a constant only by optimization. Printing the module and searching it takes a tenth
    # of LLVM's time, so it is done only for stores of integers.
    if not has_stores_to_scalarize(text):
        return parsed
    before = str(parsed)
    after = scalarize_single_lane_stores(before)
    return parsed if after == before else parse(after)
