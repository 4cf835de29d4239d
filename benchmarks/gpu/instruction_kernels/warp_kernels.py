"""Kernels that execute one matrix instruction of a warp."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from benchmarks.gpu.instruction_kernels.lane_registers import (
    LANE_NUMBER,
    load_lane_register,
    ptx_of_kernels,
    store_lane_register,
)
from gossamer_cuda_mma_sp.instructions.matrix_instructions import MatrixInstruction
from gossamer_cuda_mma_sp.target.gpu import Gpu
from gossamer_ir.core.limits import WARP_LANES

_SUMS = {"float16": ("<2 x half>", 2), "float32": ("float", 4), "int32": ("i32", 4)}
"""The type of LLVM and the number of the registers of an accumulator."""


def operand_counts(instruction: MatrixInstruction) -> tuple[int, int, int, int]:
    """Return the numbers of registers of A, B, the accumulator and the metadata.

    >>> operand_counts(MatrixInstruction(32, "float16", "float16", "float32", selectors=(0, 1)))
    (4, 4, 4, 1)
    """
    _, sums = _SUMS[instruction.accumulator]
    return instruction.a_registers, instruction.b_registers, sums, int(instruction.is_sparse)


def instruction_kernels_ptx(instructions: Iterable[tuple[MatrixInstruction, int]], gpu: Gpu) -> str:
    """Return PTX with a kernel for each instruction and selector: `instruction_0` and the following ones.

    A kernel takes the address of uint32 values, one for each register and lane of a warp: the registers of A,
    of B, of the accumulator, and of the metadata, each for 32 lanes. It writes the registers of the result
    over those of the accumulator. Run it with one block of 32 threads. The selector is ignored if the
    instruction is dense.
    """
    numbered = list(enumerate(instructions))
    declarations = dict.fromkeys(_declaration(instruction) for _, (instruction, _) in numbered)
    functions = [
        _definition(number, instruction, selector) for number, (instruction, selector) in numbered
    ]
    text = "\n".join((f"declare i32 @{LANE_NUMBER}()", *declarations, *functions))
    return ptx_of_kernels(text, gpu)


def _register_types(instruction: MatrixInstruction) -> list[str]:
    a, b, sums, metadata = operand_counts(instruction)
    sums_type, _ = _SUMS[instruction.accumulator]
    return [*[instruction.operand_type] * (a + b), *[sums_type] * sums, *["i32"] * metadata]


def _result_type(instruction: MatrixInstruction) -> str:
    type_, count = _SUMS[instruction.accumulator]
    return f"{{ {', '.join([type_] * count)} }}"


def _declaration(instruction: MatrixInstruction) -> str:
    types = [*_register_types(instruction), *["i32"] * instruction.is_sparse]
    return f"declare {_result_type(instruction)} @{instruction.intrinsic}({', '.join(types)})"


def _definition(number: int, instruction: MatrixInstruction, selector: int) -> str:
    types = _register_types(instruction)
    operands = [f"{type_} %v{register}" for register, type_ in enumerate(types)]
    operands += [f"i32 {selector}"] * instruction.is_sparse
    result = _result_type(instruction)
    lines = (
        f"define ptx_kernel void @instruction_{number}(ptr addrspace(1) %x) {{",
        f"  %lane = call i32 @{LANE_NUMBER}()",
        *chain.from_iterable(
            load_lane_register(register, type_, lanes=WARP_LANES)
            for register, type_ in enumerate(types)
        ),
        f"  %r = call {result} @{instruction.intrinsic}({', '.join(operands)})",
        *_stores(instruction, result),
        "  ret void",
        "}",
    )
    return "\n".join(lines)


def _stores(instruction: MatrixInstruction, result: str) -> Iterable[str]:
    type_, count = _SUMS[instruction.accumulator]
    first = instruction.a_registers + instruction.b_registers
    for register in range(count):
        yield from store_lane_register(result, register, first + register, type_)
