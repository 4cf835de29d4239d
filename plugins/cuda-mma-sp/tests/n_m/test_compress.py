"""Dense matrices are compressed and decompressed: canonical results, exact round trips, and refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import CompressedMatrix
from gossamer_cuda_mma_sp.n_m.metadata_words import METADATA_DTYPES, decode_metadata
from gossamer_cuda_mma_sp.n_m.n_m_patterns import ORDERED_NIBBLES
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.errors import ArgumentError, FormatError

SETTINGS = settings(max_examples=60, deadline=None)


def group_of(operand, units):
    """A group in which the units of a set are 1, 2, ..., as a matrix of one row."""
    values = np.zeros((operand.pattern.units, operand.pattern.unit_columns), operand.stored_as)
    for unit in units:
        values[unit] = unit + 1
    return values.reshape(1, -1)


def expected_units(units, pattern):
    """The units of the slots: those that are not zero, then the first others, in order."""
    others = [unit for unit in range(pattern.units) if unit not in units]
    return sorted([*units, *others][: pattern.slots])


@pytest.mark.parametrize("dtype", OPERAND_DTYPES)
def test_every_set_of_units_is_stored_in_a_canonical_way_or_refused(dtype):
    operand = OPERAND_DTYPES[dtype]
    pattern = operand.pattern
    for count in range(pattern.units + 1):
        for units in itertools.combinations(range(pattern.units), count):
            group = group_of(operand, units)
            if count > pattern.slots:
                with pytest.raises(FormatError, match=f"Row 0 has {count} ") as caught:
                    compress(group, dtype)
                assert caught.value.code == "n_m.group"
                continue
            compressed = compress(group, dtype, metadata_dtype="int8")
            slots = expected_units(units, pattern)
            stored = group.reshape(pattern.units, -1)[slots].reshape(-1)
            assert compressed.values[0, : stored.size].tolist() == stored.tolist()
            assert not compressed.values[0, stored.size :].any()
            assert decode_metadata(compressed.metadata, dtype)[0, 0].tolist() == slots
            assert {*compressed.nibbles().reshape(-1).tolist()} <= {*ORDERED_NIBBLES}
            assert (decompress(compressed) == group).all()


@pytest.mark.parametrize(
    ("group", "nibble", "values"),
    [
        ([0, 0, 0, 0], 0b0100, [0, 0]),
        ([5, 0, 0, 0], 0b0100, [5, 0]),
        ([0, 5, 0, 0], 0b0100, [0, 5]),
        ([0, 0, 5, 0], 0b1000, [0, 5]),
        ([0, 0, 0, 5], 0b1100, [0, 5]),
        ([5, 6, 0, 0], 0b0100, [5, 6]),
        ([5, 0, 6, 0], 0b1000, [5, 6]),
        ([5, 0, 0, 6], 0b1100, [5, 6]),
        ([0, 5, 6, 0], 0b1001, [5, 6]),
        ([0, 5, 0, 6], 0b1101, [5, 6]),
        ([0, 0, 5, 6], 0b1110, [5, 6]),
    ],
)
def test_the_metadata_of_two_of_four_is_that_of_ptx(group, nibble, values):
    compressed = compress(np.array([group], np.float16), metadata_dtype="int8")
    assert compressed.nibbles()[0].tolist() == [nibble, 0b0100]
    assert compressed.values[0, :2].tolist() == values


def test_the_metadata_of_one_of_two_is_that_of_ptx():
    matrix = np.array([[5, 0, 0, 6, 0, 0, 7, 0]], np.float32)
    compressed = compress(matrix)
    assert compressed.nibbles()[0].tolist() == [0b0100, 0b1110, 0b0100, 0b0100]
    assert compressed.values.tolist() == [[5, 6, 0, 7]]


def test_pairs_of_four_bits_are_kept_together():
    matrix = np.array([[0, 0, 0, -3, 0, 0, 7, 0]], np.int8)
    compressed = compress(matrix, "int4", metadata_dtype="int8")
    assert compressed.nibbles()[0, 0] == 0b1101
    assert compressed.values[0, :4].tolist() == [0, -3, 7, 0]
    with pytest.raises(
        FormatError, match="3 pairs of elements that are not both zero in columns 8"
    ):
        compress(np.array([[0] * 8 + [1, 0, 0, 1, 1, 0, 0, 0]], np.int8), "int4")


NEGATIVE_ZERO = {"float16": 0x8000, "bfloat16": 0x8000, "tfloat32": 0x80000000}
NAN = {"float16": 0x7E01, "bfloat16": 0xFFC1, "tfloat32": 0x7FC00001}
BITS = {"float16": "u2", "bfloat16": "u2", "tfloat32": "u4"}


@pytest.mark.parametrize("dtype", [*NAN, "float8_e4m3", "float8_e5m2"])
def test_negative_zeros_become_zeros_and_nan_keeps_its_bits(dtype):
    zero, nan = NEGATIVE_ZERO.get(dtype, 0x80), NAN.get(dtype, 0xFF)
    operand = OPERAND_DTYPES[dtype]
    units = [zero, nan, zero, zero][: operand.pattern.units]
    matrix = np.array([units], BITS.get(dtype, "u1")).view(operand.stored_as)
    bits = np.ascontiguousarray(decompress(compress(matrix, dtype))).view(BITS.get(dtype, "u1"))
    assert bits.tolist() == [[0, nan, 0, 0][: operand.pattern.units]]
    compressed = compress(
        np.full((1, 8), zero, matrix.view(bits.dtype).dtype).view(matrix.dtype), dtype
    )
    assert not compressed.values.view(bits.dtype).any()


@SETTINGS
@given(
    dtype=st.sampled_from([*OPERAND_DTYPES]),
    metadata_dtype=st.sampled_from(METADATA_DTYPES),
    rows=st.integers(0, 40),
    columns=st.integers(0, 140),
    seed=st.integers(0, 2**32),
)
def test_round_trips_are_exact(dtype, metadata_dtype, rows, columns, seed):
    matrix, _ = random_n_m(np.random.default_rng(seed), (rows, columns), dtype)
    compressed = compress(matrix, dtype, metadata_dtype=metadata_dtype)
    assert compressed.metadata.dtype == metadata_dtype
    assert compressed.values.shape == (
        rows,
        compressed.groups * compressed.operand.pattern.group // 2,
    )
    back = decompress(compressed)
    assert (back.dtype, back.shape) == (matrix.dtype, matrix.shape)
    assert (back == matrix).all()


@pytest.mark.parametrize("dtype", ["float16", "int4"])
def test_arrays_may_be_read_only_views(dtype):
    wide, _ = random_n_m(np.random.default_rng(2), (9, 32), dtype)
    for view in (np.asfortranarray(wide), np.repeat(wide, 2, axis=0)[::2]):
        view.flags.writeable = False
        assert (decompress(compress(view, dtype)) == wide).all()


def test_the_first_group_without_the_pattern_is_named():
    matrix = np.zeros((3, 8), np.float32)
    matrix[1, 4:6] = matrix[2, :2] = 1
    with pytest.raises(FormatError) as caught:
        compress(matrix)
    assert "Row 1 has 2 elements that are not zero in columns 4 to 5" in str(caught.value)
    assert "2 groups do not have the pattern" in str(caught.value)


def test_illegal_metadata_is_refused_with_its_position():
    compressed = compress(np.zeros((2, 32), np.int8))
    words = compressed.metadata.copy()
    words[1, 1] = 0x4454
    damaged = CompressedMatrix(compressed.values, words, "int8", (2, 32))
    with pytest.raises(FormatError, match="row 1, columns 20 to 23, is 0101") as caught:
        decompress(damaged)
    assert caught.value.code == "n_m.metadata"


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("n_m.dtype", lambda: compress(np.zeros((1, 4), np.float64))),
        ("n_m.dtype", lambda: compress(np.zeros((1, 4), np.float16), "bfloat16")),
        ("n_m.dtype", lambda: compress(np.zeros((1, 4), np.uint8), "float8")),
        ("n_m.range", lambda: compress(np.full((1, 4), 8, np.int8), "int4")),
        ("n_m.range", lambda: compress(np.full((1, 4), 16, np.uint8), "uint4")),
        ("n_m.dimensions", lambda: compress(np.zeros(4, np.int8))),
        ("n_m.metadata_dtype", lambda: compress(np.zeros((1, 4), "i1"), metadata_dtype="int64")),
        ("argument.type", lambda: compress([[0]])),
        ("argument.type", lambda: decompress(np.zeros((1, 4)))),
    ],
)  # fmt: skip
def test_other_arrays_are_refused(code, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code
