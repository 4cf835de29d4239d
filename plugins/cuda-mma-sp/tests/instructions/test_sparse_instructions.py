"""The table of instructions: sizes that follow from each other, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from gossamer_cuda_mma_sp.instructions.sparse_instructions import (
    SPARSE_INSTRUCTIONS,
    required_instruction,
    sparse_instruction,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.errors import ArgumentError


@pytest.mark.parametrize(
    "instruction", SPARSE_INSTRUCTIONS, ids=lambda each: f"{each.shape}-{each.operands[0]}"
)
def test_registers_and_metadata_fill_the_warp(instruction):
    bits = instruction.element.bits
    assert {OPERAND_DTYPES[dtype].bits for dtype in instruction.operands} == {bits}
    # Half of A, all of B, and four bits for each group, in 32 lanes of 32 bits.
    operand_bits = instruction.operand_registers * 32 * 32
    assert operand_bits == 16 * instruction.depth // 2 * bits == 8 * instruction.depth * bits
    assert 16 * instruction.groups * 4 * len(instruction.selectors) == 32 * 32
    assert instruction.selectors == tuple(range(len(instruction.selectors)))


def test_each_dtype_has_the_shapes_of_ptx():
    shapes = {
        dtype: [each.depth for each in SPARSE_INSTRUCTIONS if dtype in each.operands]
        for dtype in OPERAND_DTYPES
    }
    assert shapes == {
        "float16": [16, 32],
        "bfloat16": [16, 32],
        "tfloat32": [8, 16],
        "int8": [32, 64],
        "uint8": [32, 64],
        "float8_e4m3": [64],
        "float8_e5m2": [64],
        "int4": [64, 128],
        "uint4": [64, 128],
    }
    assert Counter(len(each.selectors) for each in SPARSE_INSTRUCTIONS) == {4: 3, 2: 5, 1: 3}


@pytest.mark.parametrize(
    ("shape", "operands", "selector", "architecture"),
    [
        ("m16n8k32", ("float16", "float16", "float16"), 1, 80),
        ("m16n8k64", ("float8_e4m3", "float8_e5m2", "float32"), 0, 89),
        ("m16n8k8", ("tfloat32", "tfloat32", "float32"), 3, 120),
        ("m16n8k128", ("int4", "uint4", "int32"), 0, 80),
    ],
)
def test_legal_instructions_are_returned(shape, operands, selector, architecture):
    instruction = required_instruction(
        shape, *operands, selector=selector, architecture=architecture
    )
    assert instruction is sparse_instruction(shape, operands[0])


@pytest.mark.parametrize(
    ("code", "shape", "operands", "selector", "architecture"),
    [
        # ptxas accepts the selectors 2 and 3 here; their behavior is undefined.
        ("n_m.selector", "m16n8k32", ("float16", "float16", "float32"), 2, 90),
        ("n_m.selector", "m16n8k64", ("int8", "int8", "int32"), 1, 90),
        ("n_m.selector", "m16n8k16", ("bfloat16", "bfloat16", "float32"), -1, 90),
        ("n_m.architecture", "m16n8k64", ("float8_e4m3", "float8_e4m3", "float32"), 0, 86),
        ("n_m.architecture", "m16n8k16", ("float16", "float16", "float32"), 0, 75),
        ("n_m.instruction", "m16n8k32", ("tfloat32", "tfloat32", "float32"), 0, 80),
        ("n_m.instruction", "m16n8k32", ("float8_e4m3", "float8_e4m3", "float32"), 0, 90),
        ("n_m.instruction", "m16n8k32", ("int8", "int4", "int32"), 0, 80),
        ("n_m.instruction", "m16n8k32", ("bfloat16", "bfloat16", "bfloat16"), 0, 80),
        ("n_m.dtype", "m16n8k32", ("float64", "float64", "float64"), 0, 80),
        ("n_m.dtype", "m16n8k32", ("int8", "float64", "int32"), 0, 80),
    ],
)
def test_illegal_instructions_are_refused(code, shape, operands, selector, architecture):
    with pytest.raises(ArgumentError) as caught:
        required_instruction(shape, *operands, selector=selector, architecture=architecture)
    assert caught.value.code == code
