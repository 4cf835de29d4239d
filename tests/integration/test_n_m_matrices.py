"""Structured sparsity with other distributions: tensors in `n_m` and `v_n_m`, and compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from gossamer_cuda_mma_sp.instructions.metadata_register_programs import pack_metadata_program
from gossamer_cuda_mma_sp.instructions.metadata_registers import pack_metadata
from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
from gossamer_cuda_mma_sp.n_m.compress_programs import compress_program, decompress_program
from gossamer_cuda_mma_sp.n_m.metadata_programs import (
    decode_metadata_program,
    encode_metadata_program,
)
from gossamer_cuda_mma_sp.n_m.metadata_words import decode_metadata
from gossamer_cuda_mma_sp.n_m.n_m_storage import from_n_m, from_v_n_m, to_n_m
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES

SHAPES = [(1, 1), (17, 41), (40, 64)]
INTEGERS = np.random.default_rng(2).integers(-8, 8, (40, 64))


def weights(shape, dtype):
    """Integers that all dtypes have, as float32."""
    numbers = INTEGERS[: shape[0], : shape[1]].astype(np.float32)
    return np.abs(numbers) % 8 if dtype.startswith("u") else numbers


def integers(matrix, dtype):
    """The elements of a matrix as integers."""
    if dtype == "bfloat16":
        matrix = (matrix.astype(np.uint32) << 16).view(np.float32)
    return matrix.astype(np.int64)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "tfloat32"])
def test_a_pruned_tensor_becomes_a_compressed_matrix_and_comes_back(dtype, shape):
    group = OPERAND_DTYPES[dtype].pattern.group
    pruned = gs.prune(weights(shape, dtype), "n_m", slots=group // 2, group=group)
    matrix = from_n_m(**pruned.arrays, **pruned.sizes, dtype=dtype)
    assert (integers(decompress(matrix), dtype) == pruned.toarray()).all()
    back = gs.from_arrays("n_m", shape, **to_n_m(matrix))
    assert (back.format, back.sizes["group"], back.nnz) == ("n_m", group, pruned.nnz)
    assert (back.toarray() == pruned.toarray()).all()


def test_pairs_of_four_bits_are_a_tensor_with_four_of_eight():
    numbers = weights((16, 48), "int4")
    numbers.reshape(16, 6, 4, 2)[:, :, 1:3] = 0
    matrix = compress(numbers.astype(np.int8), "int4")
    tensor = gs.from_arrays("n_m", matrix.shape, **to_n_m(matrix))
    assert tensor.sizes["group"] == 8
    assert (tensor.toarray() == numbers).all()
    again = from_n_m(**tensor.arrays, **tensor.sizes, dtype="int4")
    assert (again.values == matrix.values).all()


@pytest.mark.parametrize("shape", [(8, 16), (21, 41)])
def test_a_tensor_in_v_n_m_multiplies_gathered_rows(shape):
    tensor = gs.prune(weights(shape, "int8"), "v_n_m", rows=4, group=8, chosen=4, slots=2)
    matrix, columns = from_v_n_m(**tensor.arrays, **tensor.sizes, dtype="int8")
    operand = INTEGERS.T[: shape[1], :5]
    product = [
        decompress(matrix)[row].astype(np.int64) @ operand[columns[row // 4]]
        for row in range(shape[0])
    ]
    assert (np.array(product) == tensor.toarray() @ operand).all()


def array_with_pattern(shape, dtype):
    """A matrix without every other unit of each group, another one in each row."""
    operand = OPERAND_DTYPES[dtype]
    numbers = np.abs(INTEGERS[: shape[0], : shape[1]]) % 8
    unit = np.arange(shape[1]) // operand.pattern.unit_columns
    matrix = np.where((unit + np.arange(shape[0])[:, None]) % 2, numbers, 0)
    return matrix.astype(operand.stored_as)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", OPERAND_DTYPES)
def test_compiled_programs_give_what_numpy_gives(dtype, shape):
    matrix = array_with_pattern(shape, dtype)
    expected = compress(matrix, dtype)
    values = np.ones(expected.values.size, matrix.dtype)
    words = np.ones(expected.metadata.shape, np.uint16)
    excess, sizes = np.ones(shape[0], np.int64), {"m": shape[0], "n": shape[1]}
    sizes["words"] = words.shape[1]
    compressing = gs.compile(compress_program(dtype))
    compressing(x=matrix, values=values, metadata=words, excess=excess, **sizes)
    assert values.tobytes() == expected.values.tobytes()
    assert words.tobytes() == expected.metadata.tobytes()
    assert not excess.any()
    back, illegal = np.ones_like(matrix), np.ones(shape[0], np.int64)
    decompressing = gs.compile(decompress_program(dtype))
    decompressing(values=values, metadata=words, x=back, illegal=illegal, **sizes)
    assert (back == matrix).all()
    assert not illegal.any()


PATTERNS = {"float16": "m16n8k32", "tfloat32": "m16n8k8", "int4": "m16n8k128"}
"""A dtype for each pattern, and a shape of its instructions."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", PATTERNS)
def test_compiled_programs_decode_and_encode_metadata(dtype, shape):
    metadata = compress(array_with_pattern(shape, dtype), dtype).metadata
    expected = decode_metadata(metadata, dtype)
    sizes = {"m": shape[0], "words": metadata.shape[1]}
    indices, illegal = np.ones_like(expected), np.ones(shape[0], np.int64)
    decoding = gs.compile(decode_metadata_program(dtype))
    decoding(metadata=metadata.view(np.uint16), indices=indices, illegal=illegal, **sizes)
    np.testing.assert_array_equal(indices, expected)
    assert not illegal.any()
    words = np.ones(metadata.shape, np.uint16)
    encoding = gs.compile(encode_metadata_program(dtype))
    encoding(indices=indices, metadata=words, illegal=illegal, groups=indices.shape[1], **sizes)
    assert words.tobytes() == metadata.tobytes()
    assert not illegal.any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", PATTERNS)
def test_compiled_programs_pack_metadata(dtype, shape):
    matrix = compress(array_with_pattern(shape, dtype), dtype)
    instruction = sparse_instruction(PATTERNS[dtype], dtype)
    expected = pack_metadata(matrix, instruction)
    registers = np.ones_like(expected)
    sizes = {"m": shape[0], "words": matrix.metadata.shape[1]}
    tiles = dict(zip(("sets", "depth_tiles"), expected.shape[:2], strict=True))
    packing = gs.compile(pack_metadata_program(instruction))
    packing(metadata=matrix.metadata.view(np.uint16), registers=registers, **sizes, **tiles)
    np.testing.assert_array_equal(registers, expected)
