"""The table of matrix instructions: LLVM emits each, and ptxas assembles it where it is legal."""

import llvmlite.binding as llvm
import pytest
from assembler import assembled

from gossamer_cuda_mma_sp.codegen.ptx import TRIPLE
from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MATRIX_INSTRUCTIONS,
    PTX_TYPES,
    matrix_instruction,
)
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target
from gossamer_llvm.target_machines import cross_target_machine

ACCUMULATORS = {"float16": ("<2 x half>", 2), "float32": ("float", 4), "int32": ("i32", 4)}


def gpu(name):
    return gpu_of(Target.parse(f"cuda-mma-sp:arch={name}"))


def function_text(number, instruction, selector):
    """A kernel that loads registers, executes the instruction, and stores the result."""
    sums, count = ACCUMULATORS[instruction.accumulator]
    types = [instruction.operand_type] * (instruction.a_registers + instruction.b_registers)
    types += [sums] * count + ["i32"] * instruction.is_sparse
    lines, operands = [], []
    for at, type_ in enumerate(types):
        lines.append(f"  %p{at} = getelementptr i8, ptr addrspace(1) %x, i64 {4 * at}")
        lines.append(f"  %v{at} = load {type_}, ptr addrspace(1) %p{at}")
        operands.append(f"{type_} %v{at}")
    if instruction.is_sparse:
        operands.append(f"i32 {selector}")
        types.append("i32")
    result = f"{{ {', '.join([sums] * count)} }}"
    return (
        f"declare {result} @{instruction.intrinsic}({', '.join(types)})\n",
        f"define ptx_kernel void @f{number}(ptr addrspace(1) %x) {{\n"
        + "\n".join(lines)
        + f"\n  %r = call {result} @{instruction.intrinsic}({', '.join(operands)})\n"
        f"  store {result} %r, ptr addrspace(1) %x\n  ret void\n}}\n",
    )


def ptx_of(instructions, gpu):
    declarations, functions = {}, []
    for instruction in instructions:
        for selector in instruction.selectors or (0,):
            declared, text = function_text(len(functions), instruction, selector)
            declarations[instruction.intrinsic] = declared
            functions.append(text)
    machine = cross_target_machine(TRIPLE, cpu=gpu.architecture.name, features=gpu.llvm_features)
    parsed = llvm.parse_assembly("".join((*declarations.values(), *functions)))
    parsed.triple = TRIPLE
    return machine.emit_assembly(parsed)


@pytest.mark.parametrize("name", ["sm_80", "sm_89", "sm_90", "sm_100"])
def test_ptxas_assembles_every_instruction_that_a_gpu_has(name, tmp_path):
    legal = [each for each in MATRIX_INSTRUCTIONS if each.is_on(gpu(name))]
    text = ptx_of(legal, gpu(name))
    assert ".extern" not in text
    for each in legal:
        kind = "mma.sp::ordered_metadata" if each.is_sparse else "mma"
        a, b, sums = (PTX_TYPES[dtype] for dtype in (each.a, each.b, each.accumulator))
        assert f"{kind}.sync.aligned.m16n8k{each.depth}.row.col.{sums}.{a}.{b}.{sums}" in text
    assembled(text, name, tmp_path)


def test_float8_begins_with_sm_89_and_matrix_instructions_with_sm_80():
    on = {
        name: {each.a for each in MATRIX_INSTRUCTIONS if each.is_on(gpu(name))}
        for name in ("sm_75", "sm_80", "sm_89")
    }
    assert on["sm_75"] == set()
    assert on["sm_89"] - on["sm_80"] == {"float8_e4m3", "float8_e5m2"}


def test_an_instruction_that_ptxas_emulates_is_not_chosen():
    def chosen(name, dtype, sums):
        return matrix_instruction(dtype, dtype, sums, depth=128, is_sparse=True, gpu=gpu(name))

    assert chosen("sm_80", "int4", "int32").depth == 128
    assert chosen("sm_90", "int4", "int32") is None
    assert chosen("sm_89", "float8_e4m3", "float32").depth == 64
    assert chosen("sm_100", "float8_e4m3", "float32") is None
    assert chosen("sm_90", "float16", "float32").depth == 32
