"""The table of `wgmma.mma_async.sp`: ptxas takes all of it, and nothing else."""

import re

import pytest
from assembler import assembled
from cuda_toolchain import toolchain_program
from disassembler import count_of, opcodes
from msgspec.structs import replace
from warpgroup_operands import GPU

from benchmarks.gpu.instruction_kernels.warpgroup_kernels import (
    WarpgroupUse,
    warpgroup_kernels_ptx,
    warpgroup_uses,
)
from gossamer_cuda_mma_sp.instructions.warpgroup_instructions import (
    WARPGROUP_INSTRUCTIONS,
    warpgroup_instruction,
)
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_llvm import WarpgroupOperands, warpgroup_assembly

HEADER = ".version 8.5\n.target sm_90a\n.address_size 64\n"
KERNEL = ".visible .entry k%d() .maxntid 128 { .reg .b32 %%r<210>; .reg .b64 %%d<2>; %s ret; }\n"


def assembly(use):
    """The emitted assembly of a use, with registers of one kernel. LLVM is not run: it takes a minute."""
    count = use.instruction.sum_registers
    a = ("i64 a",) if use.a_is_shared else ("i32 a",) * 4
    operands = WarpgroupOperands(a, "i64 b", "i32 e")
    _, call = warpgroup_assembly(
        use.instruction.ptx_name,
        (("i32 c",) * count,),
        (operands,),
        selector=use.selector,
        immediates=use.immediates,
    )
    text = re.search(r'asm sideeffect "(.*?)"', call)[1]
    left = ["%d0"] if use.a_is_shared else [f"%r{number}" for number in range(200, 204)]
    names = [f"%r{number}" for number in range(count)] * 2 + [*left, "%d1", "%r204"]
    return re.sub(r"\$(\d+)", lambda match: names[int(match[1])], text)


def test_ptxas_assembles_every_use_of_every_instruction(tmp_path):
    kernels = [
        KERNEL % (number, "\n".join(map(assembly, warpgroup_uses(instruction))))
        for number, instruction in enumerate(WARPGROUP_INSTRUCTIONS)
    ]
    text = HEADER + "".join(kernels)
    assert text.count("wgmma.mma_async.sp") == 2080
    assembled(text, "sm_90a", tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sm_90a", "sm_90"),
        ("m64n16k64", "m64n40k64"),
        ("m64n16k64", "m64n16k32"),
        (", 0, is_added", ", 1, is_added"),
    ],
)
def test_ptxas_assembles_nothing_else(old, new, tmp_path):
    if toolchain_program("ptxas") is None:
        pytest.skip("there is no ptxas: install nvidia-cuda-nvcc")
    use = WarpgroupUse(warpgroup_instruction(16, "int8", "int8", "int32"))
    text = (HEADER + KERNEL % (0, assembly(use))).replace(old, new)
    with pytest.raises(AssertionError, match="ptxas"):
        assembled(text, "sm_90" if old == "sm_90a" else "sm_90a", tmp_path)


@pytest.mark.parametrize(
    ("columns", "a", "sums", "opcode"),
    [
        (256, "float16", "float32", "HGMMA.SP.64x256x32.F32"),
        (64, "bfloat16", "float32", "HGMMA.SP.64x64x32.F32.BF16"),
        (8, "tfloat32", "float32", "HGMMA.SP.64x8x16.F32.TF32"),
        (64, "float8_e4m3", "float16", "QGMMA.SP.64x64x64.F16.E4M3.E4M3"),
        (64, "int8", "int32", "IGMMA.SP.64x64x64.S8.S8"),
    ],
)
def test_an_instruction_is_one_of_the_hardware(columns, a, sums, opcode, tmp_path):
    instruction = warpgroup_instruction(columns, a, a, sums)
    require_opcode(instruction, opcode, tmp_path)


def test_sums_that_saturate_are_those_of_the_hardware(tmp_path):
    wrapping = warpgroup_instruction(64, "int8", "int8", "int32")
    assert not wrapping.saturates
    require_opcode(replace(wrapping, saturates=True), "IGMMA.SP.64x64x64.S8.S8.SAT", tmp_path)


def require_opcode(instruction, opcode, tmp_path):
    counts = opcodes(warpgroup_kernels_ptx([WarpgroupUse(instruction)], GPU), "sm_90a", tmp_path)
    assert count_of(counts, opcode) == 1


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("n_m.dtype", lambda: warpgroup_instruction(8, "float64", "float16", "float32")),
        ("n_m.instruction", lambda: warpgroup_instruction(8, "float16", "bfloat16", "float32")),
        ("n_m.instruction", lambda: warpgroup_instruction(264, "float16", "float16", "float32")),
        ("n_m.instruction", lambda: warpgroup_instruction(40, "int8", "int8", "int32")),
        ("n_m.instruction", lambda: warpgroup_instruction(8, "int4", "int4", "int32")),
    ],
)
def test_what_is_not_in_the_table_is_refused(code, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100a", "sm_120a"])
def test_only_one_architecture_has_the_instructions(arch):
    gpu = gpu_of(Target.parse(f"cuda-mma-sp:arch={arch}"))
    use = WarpgroupUse(WARPGROUP_INSTRUCTIONS[0])
    with pytest.raises(ArgumentError, match=f"{arch} with PTX .* expected sm_90a") as caught:
        warpgroup_kernels_ptx([use], gpu)
    assert caught.value.code == "n_m.architecture"
