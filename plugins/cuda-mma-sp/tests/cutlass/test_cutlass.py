"""Metadata in the orders of CUTLASS. Tests that need torch are skipped without it."""

from __future__ import annotations

import itertools
from importlib.util import find_spec

import numpy as np
import pytest
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.cutlass.cutlass_sm80 import from_cutlass_sm80, to_cutlass_sm80
from gossamer_cuda_mma_sp.cutlass.cutlass_sm90 import from_cutlass_sm90, to_cutlass_sm90
from gossamer_cuda_mma_sp.instructions.metadata_registers import pack_metadata
from gossamer_cuda_mma_sp.instructions.sparse_instructions import sparse_instruction
from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import padded_nibbles
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.errors import ArgumentError, FormatError

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
SHAPES = [(0, 64), (5, 0), (1, 1), (32, 64), (70, 200)]
IN_FRAGMENT_ORDER = [
    ("float16", "m16n8k32"),
    ("bfloat16", "m16n8k32"),
    ("tfloat32", "m16n8k16"),
    ("int8", "m16n8k64"),
    ("uint4", "m16n8k128"),
]
WIDE = [dtype for dtype in OPERAND_DTYPES if OPERAND_DTYPES[dtype].bits >= 8]


def random_compressed(shape, dtype):
    matrix, _ = random_n_m(np.random.default_rng(8), shape, dtype)
    return matrix, compress(matrix, dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", OPERAND_DTYPES)
def test_the_order_of_sm80_is_undone(dtype, shape):
    matrix, compressed = random_compressed(shape, dtype)
    values, metadata = to_cutlass_sm80(compressed)
    assert values.shape[0] == metadata.shape[0]
    assert values.shape[1] * 2 == (
        metadata.shape[1] * metadata.itemsize * 2 * compressed.operand.pattern.group
    )
    back = from_cutlass_sm80(values, metadata, dtype, shape=shape)
    assert (decompress(back) == matrix).all()
    assert back.shape == shape
    assert from_cutlass_sm80(values, metadata, dtype).shape == (
        values.shape[0],
        values.shape[1] * 2,
    )


@pytest.mark.parametrize(("dtype", "name"), IN_FRAGMENT_ORDER)
def test_the_order_of_sm80_is_that_of_registers(dtype, name):
    """Read as uint32, the words are the registers of the lanes: sm_80 itself consumes this order."""
    instruction = sparse_instruction(name, dtype)
    _, compressed = random_compressed((64, 4 * instruction.depth), dtype)
    words = to_cutlass_sm80(compressed)[1].reshape(-1).view(np.uint32)
    registers = pack_metadata(compressed, instruction)
    assert (words.reshape(4, -1, 32).transpose(1, 0, 2) == registers).all()


@pytest.mark.parametrize("tiles", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", WIDE)
def test_the_order_of_sm90_is_undone(dtype, shape, tiles):
    columns = 512 // OPERAND_DTYPES[dtype].bits * tiles
    if columns > 128:
        pytest.skip("a tile has at most 128 columns")
    matrix, compressed = random_compressed(shape, dtype)
    values, metadata = to_cutlass_sm90(compressed, tile_columns=columns)
    assert values.shape == (metadata.shape[1] * 64, metadata.shape[0] * columns // 2)
    back = from_cutlass_sm90(values, metadata, dtype, tile_columns=columns, shape=shape)
    assert (decompress(back) == matrix).all()


def sm90_offset(row, column, *, bits, tile_columns):
    """The dense column and row of a tile to a place among its logical elements: a sum of strides, which
    are products of the sizes of faster modes."""
    if bits == 8:
        return row * tile_columns + column
    run, block = 256 // bits, 512 // bits
    modes = [
        (column % run, run),
        (row // 8 % 2, 2),
        (column // block, tile_columns // block),
        (row % 8, 8),
        (column // run % 2, 2),
        (row // 16, 4),
    ]
    offset, stride = 0, 1
    for coordinate, size in modes:
        offset, stride = offset + coordinate * stride, stride * size
    return offset


@pytest.mark.parametrize(
    ("dtype", "tile_columns"),
    [("float16", 32), ("bfloat16", 64), ("tfloat32", 16), ("tfloat32", 64), ("int8", 128)],
)
def test_the_order_of_sm90_is_that_of_its_strides(dtype, tile_columns):
    _, compressed = random_compressed((128, 2 * tile_columns), dtype)
    operand = compressed.operand
    group, nibbles = operand.pattern.group, padded_nibbles(compressed, rows=1, groups=1)
    _, metadata = to_cutlass_sm90(compressed, tile_columns=tile_columns)
    for row, at in itertools.product(range(128), range(2 * tile_columns // group)):
        place = sm90_offset(
            row % 64, at * group % tile_columns, bits=operand.bits, tile_columns=tile_columns
        )
        octet = metadata[at * group // tile_columns, row // 64, place // group // 2]
        assert octet >> place // group % 2 * 4 & 15 == nibbles[row, at]


@needs_torch
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "tfloat32", "int8"])
@pytest.mark.parametrize("shape", [(32, 64), (96, 256)])
def test_torch_stores_the_same_words(dtype, shape):
    """Groups are full: of others, torch chooses different zeros."""
    import torch
    from torch.sparse import _semi_structured_conversions as conversions

    compressed = compress(full_groups(shape, dtype), dtype)
    values, metadata = to_cutlass_sm80(compressed)
    matrix = decompress(compressed)
    dense = torch.from_numpy(matrix.view(np.int16) if dtype == "bfloat16" else matrix)
    dense = dense.view(torch.bfloat16) if dtype == "bfloat16" else dense
    expected, words = conversions.sparse_semi_structured_from_dense_cutlass(dense)
    bits = f"int{8 * values.itemsize}"
    assert (expected.view(getattr(torch, bits)).numpy() == values.view(bits)).all()
    assert (words.numpy() == metadata).all()
    back = from_cutlass_sm80(values, words.numpy(), dtype)
    assert (decompress(back) == matrix).all()
    ours = torch.from_numpy(values.view(bits)).view(dense.dtype), torch.from_numpy(metadata)
    assert conversions.sparse_semi_structured_to_dense_cutlass(*ours).equal(dense)


@needs_torch
@pytest.mark.parametrize("dtype", ["float16", "tfloat32", "int8"])
def test_what_torch_stores_is_read(dtype):
    """Groups may have fewer elements: torch keeps other zeros, and all elements."""
    import torch
    from torch.sparse import _semi_structured_conversions as conversions

    matrix, _ = random_compressed((64, 128), dtype)
    stored = conversions.sparse_semi_structured_from_dense_cutlass(torch.from_numpy(matrix))
    back = from_cutlass_sm80(*(part.numpy() for part in stored), dtype)
    assert (decompress(back) == matrix).all()


def full_groups(shape, dtype):
    """A matrix with as many elements in each group as its pattern keeps."""
    operand, rng = OPERAND_DTYPES[dtype], np.random.default_rng(9)
    units = operand.pattern.units
    integers = rng.integers(1, 9, (shape[0], shape[1] // units, units))
    dropped = rng.random(integers.shape).argsort(axis=2)[..., : units // 2]
    np.put_along_axis(integers, dropped, 0, axis=2)
    if dtype == "bfloat16":
        return (integers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).reshape(shape)
    return integers.astype(operand.stored_as).reshape(shape)


EMPTY = compress(np.zeros((1, 4), np.float16))
FOUR_BITS = compress(np.zeros((1, 8), np.int8), "int4")
VALUES, WORDS = to_cutlass_sm80(EMPTY)
OF_SM90 = to_cutlass_sm90(EMPTY, tile_columns=32)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("n_m.cutlass", lambda: from_cutlass_sm80(VALUES, WORDS.view(np.uint16))),
        ("n_m.cutlass", lambda: from_cutlass_sm80(VALUES, WORDS[:16])),
        ("n_m.cutlass", lambda: from_cutlass_sm80(VALUES, WORDS[:, :1])),
        ("n_m.shape", lambda: from_cutlass_sm80(VALUES, WORDS, shape=(33, 4))),
        ("n_m.shape", lambda: from_cutlass_sm80(VALUES[:, :8], WORDS)),
        ("n_m.cutlass", lambda: to_cutlass_sm90(EMPTY, tile_columns=16)),
        ("n_m.cutlass", lambda: to_cutlass_sm90(EMPTY, tile_columns=256)),
        ("n_m.dtype", lambda: to_cutlass_sm90(FOUR_BITS, tile_columns=128)),
        ("n_m.cutlass", lambda: from_cutlass_sm90(*OF_SM90, tile_columns=64)),
        ("n_m.shape", lambda: from_cutlass_sm90(*OF_SM90, tile_columns=32, shape=(1, 33))),
    ],
)
def test_what_is_not_of_cutlass_is_refused(code, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


def test_groups_of_zeros_that_cutlass_compressed_itself_are_refused():
    """The compressor of CUTLASS for sm_90 stores 0000, whose behavior PTX does not define."""
    values, metadata = OF_SM90
    with pytest.raises(FormatError, match="is 0000") as caught:
        from_cutlass_sm90(values, np.zeros_like(metadata), tile_columns=32)
    assert caught.value.code == "n_m.metadata"
