"""Registers of lanes in the memory of the caller, and PTX from the text of kernels in LLVM IR."""

from __future__ import annotations

from gossamer_cuda_mma_sp.codegen.ptx import TRIPLE, without_externals
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_llvm.optimization import parse
from gossamer_llvm.target_machines import cross_target_machine

LANE_NUMBER = "llvm.nvvm.read.ptx.sreg.tid.x"
"""The function that returns the number of a lane, which kernels have in `%lane`."""


def load_lane_register(at: int, type_: str, *, lanes: int) -> tuple[str, ...]:
    """Return the lines that load register `at` of a lane, of a type of LLVM, from the array `%x`.

    >>> load_lane_register(2, "float", lanes=32)[-1]
    '  %v2 = load float, ptr addrspace(1) %p2'
    """
    return (
        f"  %i{at} = add i32 %lane, {lanes * at}",
        f"  %p{at} = getelementptr i32, ptr addrspace(1) %x, i32 %i{at}",
        f"  %v{at} = load {type_}, ptr addrspace(1) %p{at}",
    )


def store_lane_register(result: str, number: int, at: int, type_: str) -> tuple[str, ...]:
    """Return the lines that store the element `number` of the result `%r`, of a type of LLVM, over register
    `at`, which `load_lane_register` has loaded.

    >>> store_lane_register("{ float, float }", 1, 9, "float")
    ('  %d1 = extractvalue { float, float } %r, 1', '  store float %d1, ptr addrspace(1) %p9')
    """
    return (
        f"  %d{number} = extractvalue {result} %r, {number}",
        f"  store {type_} %d{number}, ptr addrspace(1) %p{at}",
    )


def ptx_of_kernels(text: str, gpu: Gpu) -> str:
    """Return the PTX of kernels in LLVM IR."""
    machine = cross_target_machine(TRIPLE, cpu=gpu.architecture.name, features=gpu.llvm_features)
    parsed = parse(text)
    parsed.triple = TRIPLE
    return without_externals(str(machine.emit_assembly(parsed)))
