"""Metadata in row order: words of each dtype, indices of slots, slices and concatenations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.n_m.compress import compress, decompress
from gossamer_cuda_mma_sp.n_m.compressed_matrix import (
    compressed_matrix,
    concatenate_compressed,
    slice_compressed,
    with_metadata_dtype,
)
from gossamer_cuda_mma_sp.n_m.metadata_words import (
    METADATA_DTYPES,
    decode_metadata,
    encode_metadata,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.errors import ArgumentError, FormatError

SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(
    dtype=st.sampled_from([*OPERAND_DTYPES]),
    dtypes=st.tuples(st.sampled_from(METADATA_DTYPES), st.sampled_from(METADATA_DTYPES)),
    rows=st.integers(0, 9),
    columns=st.integers(0, 100),
)
def test_words_of_all_dtypes_say_the_same(dtype, dtypes, rows, columns):
    matrix, _ = random_n_m(np.random.default_rng(4), (rows, columns), dtype)
    before, after = (compress(matrix, dtype, metadata_dtype=each) for each in dtypes)
    changed = with_metadata_dtype(before, dtypes[1])
    assert (changed.shape, changed.metadata.dtype) == (after.shape, after.metadata.dtype)
    assert (changed.metadata == after.metadata).all()
    assert changed.values.shape == after.values.shape
    assert (changed.values == after.values).all()


@SETTINGS
@given(
    dtype=st.sampled_from([*OPERAND_DTYPES]),
    metadata_dtype=st.sampled_from(METADATA_DTYPES),
    rows=st.integers(0, 5),
    groups=st.integers(0, 20),
    seed=st.integers(0, 2**32),
)
def test_indices_are_encoded_and_decoded(dtype, metadata_dtype, rows, groups, seed):
    pattern = OPERAND_DTYPES[dtype].pattern
    choices = [*itertools.combinations(range(pattern.units), pattern.slots)]
    chosen = np.random.default_rng(seed).integers(0, len(choices), (rows, groups))
    indices = np.array(choices)[chosen]
    metadata = encode_metadata(indices, dtype, metadata_dtype=metadata_dtype)
    assert metadata.dtype == metadata_dtype
    back = decode_metadata(metadata, dtype)
    assert (back[:, :groups] == indices).all()
    assert (back[:, groups:] == np.arange(pattern.slots)).all()


ORDERED = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110}


@pytest.mark.parametrize(
    ("dtype", "legal"),
    [("float16", ORDERED), ("tfloat32", {0b0100, 0b1110}), ("uint4", ORDERED)],
)
def test_other_nibbles_than_the_legal_ones_are_refused(dtype, legal):
    first = 3 * OPERAND_DTYPES[dtype].pattern.group
    for nibble in range(16):
        metadata = np.array([[0x44, 0x44], [0x44, nibble << 4 | 4]], np.uint8).view(np.int8)
        if nibble in legal:
            assert decode_metadata(metadata, dtype).shape[:2] == (2, 4)
            continue
        expected = f"row 1, columns {first} to .* is {nibble:04b};"
        with pytest.raises(FormatError, match=expected) as caught:
            decode_metadata(metadata, dtype)
        assert caught.value.code == "n_m.metadata"


@pytest.mark.parametrize("metadata_dtype", METADATA_DTYPES)
@pytest.mark.parametrize("dtype", ["float16", "tfloat32", "int4"])
def test_slices_are_concatenated_to_the_whole(dtype, metadata_dtype):
    columns = OPERAND_DTYPES[dtype].pattern.group * 30 + 1
    matrix, _ = random_n_m(np.random.default_rng(6), (11, columns), dtype)
    whole = compress(matrix, dtype, metadata_dtype=metadata_dtype)
    cut = whole.word_columns * 2
    parts = [
        [slice_compressed(whole, rows, columns) for columns in (slice(cut), slice(cut, None))]
        for rows in (slice(0, 4), slice(4, 4), slice(4, None))
    ]
    assert (decompress(parts[2][1]) == matrix[4:, cut:]).all()
    assert parts[0][0].values.base is not None
    joined = concatenate_compressed([concatenate_compressed(row, axis=1) for row in parts])
    assert joined.shape == whole.shape
    assert (joined.metadata == whole.metadata).all()
    assert (joined.values == whole.values).all()


WHOLE = compress(np.zeros((4, 40), np.int8))
OTHER = compress(np.zeros((4, 40), np.uint8))


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("n_m.slice", lambda: slice_compressed(WHOLE, columns=slice(4, None))),
        ("n_m.slice", lambda: slice_compressed(WHOLE, columns=slice(0, 20))),
        ("n_m.slice", lambda: slice_compressed(WHOLE, slice(None, None, 2))),
        ("n_m.concatenate", lambda: concatenate_compressed([])),
        ("n_m.concatenate", lambda: concatenate_compressed([WHOLE], axis=2)),
        ("n_m.concatenate", lambda: concatenate_compressed([WHOLE, OTHER])),
        ("n_m.concatenate", lambda: concatenate_compressed([WHOLE, WHOLE], axis=1)),
        ("n_m.metadata_dtype", lambda: with_metadata_dtype(WHOLE, "uint16")),
        ("n_m.shape", lambda: compressed_matrix(WHOLE.values[:, :8], WHOLE.metadata)),
        (
            "n_m.shape",
            lambda: compressed_matrix(WHOLE.values, WHOLE.metadata, shape=(4, 49)),
        ),
        ("n_m.dtype", lambda: compressed_matrix(WHOLE.values, WHOLE.metadata, "uint8")),
        ("n_m.dimensions", lambda: compressed_matrix(WHOLE.values[0], WHOLE.metadata)),
        ("n_m.dimensions", lambda: decode_metadata(WHOLE.metadata[0], "int8")),
        ("n_m.metadata_dtype", lambda: decode_metadata(WHOLE.metadata.view("u2"), "int8")),
        ("n_m.dtype", lambda: decode_metadata(WHOLE.metadata, "int64")),
        ("n_m.dimensions", lambda: encode_metadata(np.zeros((1, 1, 1), int), "int8")),
    ],
)
def test_what_cannot_be_cut_or_joined_is_refused(code, call):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert caught.value.code == code


@pytest.mark.parametrize("indices", [[1, 1], [2, 1], [0, 4], [-1, 2]])
def test_indices_that_do_not_increase_are_refused(indices):
    with pytest.raises(FormatError, match="row 0, group 1") as caught:
        encode_metadata(np.array([[[0, 1], indices]]), "float16")
    assert caught.value.code == "n_m.indices"


def test_a_compressed_matrix_is_made_of_the_arrays_of_another_program():
    matrix = compressed_matrix(WHOLE.values, WHOLE.metadata, shape=(4, 40))
    assert (matrix.shape, matrix.dtype) == ((4, 40), "int8")
    assert matrix.values is WHOLE.values
    with pytest.raises(FormatError, match="row 0, columns 0 to 3, is 0000"):
        compressed_matrix(WHOLE.values, np.zeros_like(WHOLE.metadata))
