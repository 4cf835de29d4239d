"""Operands and metadata as the lanes of a warp hold them: packed tiles, multiplied lane by lane, give the
dense product."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from n_m_matrices import random_elements, random_n_m
from sparse_mma_lanes import sparse_mma

from gossamer_cuda_mma_sp.instructions.metadata_registers import (
    pack_metadata,
    supplying_lanes,
    unpack_metadata,
)
from gossamer_cuda_mma_sp.instructions.operand_registers import (
    pack_a,
    pack_accumulator,
    pack_b,
    unpack_a,
    unpack_accumulator,
    unpack_b,
)
from gossamer_cuda_mma_sp.instructions.sparse_instructions import SPARSE_INSTRUCTIONS
from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import padded_nibbles
from gossamer_ir.errors import ArgumentError, FormatError

POISON = np.uint32(0xFFFFFFFF)
"""Illegal metadata in lanes that must not be read."""
COMBINATIONS = [
    (instruction, a, b, accumulator)
    for instruction in SPARSE_INSTRUCTIONS
    for a, b in itertools.product(instruction.operands, repeat=2)
    for accumulator in instruction.accumulators
]


def named(value):
    return value if isinstance(value, str) else value.shape


@pytest.mark.parametrize(("instruction", "a", "b", "accumulator"), COMBINATIONS, ids=named)
def test_packed_tiles_give_the_dense_product(instruction, a, b, accumulator):
    rng, count = np.random.default_rng(7), len(instruction.selectors)
    # Ragged sizes: the last tile in each direction is padded.
    rows, depth, columns = 16 * count + 3, instruction.depth + 5, 7
    left, left_integers = random_n_m(rng, (rows, depth), a)
    right, right_integers = random_elements(rng, (depth, columns), b)
    initial = rng.integers(-9, 9, (rows, columns)).astype(accumulator)
    matrix = compress(left, a)
    packed_a, packed_b = pack_a(matrix, instruction), pack_b(right, instruction, b)
    words, results = pack_metadata(matrix, instruction), pack_accumulator(initial)
    for row, column in itertools.product(*map(range, results.shape[:2])):
        tile_set, selector = divmod(row, count)
        is_read = np.isin(np.arange(32), supplying_lanes(instruction, selector))
        for tile in range(packed_b.shape[0]):
            results[row, column] = sparse_mma(
                packed_a[row, tile],
                packed_b[tile, column],
                results[row, column],
                np.where(is_read, words[tile_set, tile], POISON),
                depth=instruction.depth,
                a_dtype=a,
                b_dtype=b,
                accumulator=accumulator,
                selector=selector,
            )
    expected = left_integers @ right_integers + initial.astype(np.int64)
    assert (unpack_accumulator(results, accumulator)[:rows, :columns] == expected).all()


@pytest.mark.parametrize(
    ("instruction", "dtype"),
    [(each, dtype) for each in SPARSE_INSTRUCTIONS for dtype in each.operands],
    ids=named,
)
@pytest.mark.parametrize("shape", [(0, 40), (3, 0), (1, 1), (70, 130)])
def test_packed_registers_are_unpacked_to_the_same_elements(instruction, dtype, shape):
    rng = np.random.default_rng(3)
    matrix = compress(random_n_m(rng, shape, dtype)[0], dtype, metadata_dtype="int8")
    registers = pack_a(matrix, instruction)
    assert registers.shape[2:] == (32, instruction.operand_registers)
    values = unpack_a(registers, instruction, dtype)
    assert values.dtype == matrix.values.dtype
    rows, columns = matrix.values.shape
    assert (values[:rows, : matrix.values.shape[1]] == matrix.values[:, : values.shape[1]]).all()
    assert not values[rows:].any()
    assert not values[:, columns:].any()
    dense, _ = random_elements(rng, shape, dtype)
    back = unpack_b(pack_b(dense, instruction, dtype), instruction, dtype)
    assert (back[: shape[0], : shape[1]] == dense).all()
    assert not back[shape[0] :].any()
    words = pack_metadata(matrix, instruction)
    nibbles = unpack_metadata(words, instruction)
    padded = padded_nibbles(matrix, rows=16 * len(instruction.selectors), groups=instruction.groups)
    assert (nibbles == padded).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("shape", [(0, 9), (9, 0), (17, 9)])
def test_accumulators_are_unpacked(dtype, shape):
    matrix = np.random.default_rng(1).integers(-99, 99, shape).astype(dtype)
    registers = pack_accumulator(matrix)
    assert registers.shape[2:] == (32, 2 if dtype == "float16" else 4)
    assert (unpack_accumulator(registers, dtype)[: shape[0], : shape[1]] == matrix).all()


@pytest.mark.parametrize("instruction", SPARSE_INSTRUCTIONS, ids=named)
def test_each_lane_supplies_metadata_for_one_selector(instruction):
    lanes = [supplying_lanes(instruction, selector) for selector in instruction.selectors]
    assert sorted(itertools.chain(*lanes)) == [*range(32)]
    with pytest.raises(ArgumentError) as caught:
        supplying_lanes(instruction, len(lanes))
    assert caught.value.code == "n_m.selector"


K32 = next(each for each in SPARSE_INSTRUCTIONS if "float16" in each.operands and each.depth == 32)
MATRIX = compress(np.eye(4, dtype=np.int8))


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("n_m.operand", lambda: pack_a(MATRIX, K32)),
        ("n_m.operand", lambda: pack_b(np.zeros((4, 4), np.int8), K32)),
        ("n_m.operand", lambda: pack_metadata(MATRIX, K32)),
        ("n_m.operand", lambda: unpack_a(np.zeros((1, 1, 32, 4), np.uint32), K32, "int8")),
        ("n_m.registers", lambda: unpack_a(np.zeros((1, 1, 32, 2), "u4"), K32, "float16")),
        ("n_m.registers", lambda: unpack_b(np.zeros((1, 1, 32, 4), "i4"), K32, "float16")),
        ("n_m.registers", lambda: unpack_metadata(np.zeros((1, 1, 16), np.uint32), K32)),
        ("n_m.registers", lambda: unpack_accumulator(np.zeros((1, 32, 4), "u4"), "float32")),
        ("n_m.accumulator", lambda: unpack_accumulator(np.zeros((1, 1, 32, 4), "u4"), "int8")),
        ("n_m.accumulator", lambda: pack_accumulator(np.zeros((4, 4)))),
        ("n_m.dimensions", lambda: pack_accumulator(np.zeros(4, np.float32))),
        ("n_m.dimensions", lambda: pack_b(np.zeros((1, 1, 1), np.float16), K32)),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_registers_are_refused(code, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


def test_illegal_metadata_of_lanes_is_refused():
    words = pack_metadata(compress(np.zeros((1, 4), np.float16)), K32)
    words[0, 0, 6] = 0x44440444
    with pytest.raises(FormatError, match=r"row 17, columns 12 to 15, is 0000") as caught:
        unpack_metadata(words, K32)
    assert caught.value.code == "n_m.metadata"
