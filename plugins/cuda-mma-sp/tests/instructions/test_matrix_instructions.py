"""The table of matrix instructions: LLVM emits each, and ptxas assembles it where it is legal."""

import pytest
from assembler import assembled

from benchmarks.gpu.instruction_kernels.warp_kernels import instruction_kernels_ptx
from gossamer_cuda_mma_sp.instructions.matrix_instructions import (
    MATRIX_INSTRUCTIONS,
    PTX_TYPES,
    matrix_instruction,
)
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target


def gpu(name):
    return gpu_of(Target.parse(f"cuda-mma-sp:arch={name}"))


@pytest.mark.parametrize("name", ["sm_80", "sm_89", "sm_90", "sm_100"])
def test_ptxas_assembles_every_instruction_that_a_gpu_has(name, tmp_path):
    legal = [each for each in MATRIX_INSTRUCTIONS if each.is_on(gpu(name))]
    pairs = [(each, selector) for each in legal for selector in each.selectors or (0,)]
    text = instruction_kernels_ptx(pairs, gpu(name))
    for each in legal:
        kind = "mma.sp::ordered_metadata" if each.is_sparse else "mma"
        a, b, sums = (PTX_TYPES[dtype] for dtype in (each.a, each.b, each.accumulator))
        ways = "row.col.satfinite" if each.saturates else "row.col"
        assert f"{kind}.sync.aligned.m16n8k{each.depth}.{ways}.{sums}.{a}.{b}.{sums}" in text
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
    assert not chosen("sm_80", "int8", "int32").saturates
    assert chosen("sm_90", "int4", "int32") is None
    assert chosen("sm_89", "float8_e4m3", "float32").depth == 64
    assert chosen("sm_100", "float8_e4m3", "float32") is None
    assert chosen("sm_90", "float16", "float32").depth == 32
