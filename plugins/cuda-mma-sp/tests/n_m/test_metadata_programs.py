"""Programs that decode and encode metadata, interpreted, give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.metadata_programs import (
    decode_metadata_program,
    encode_metadata_program,
)
from gossamer_cuda_mma_sp.n_m.metadata_words import (
    METADATA_DTYPES,
    decode_metadata,
    encode_metadata,
)
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify

DTYPES = ["float16", "tfloat32", "int4"]
"""One for each pattern."""


def decoded_by_program(words, dtype, metadata_dtype):
    """The indices and the numbers of illegal nibbles."""
    slots, rows = OPERAND_DTYPES[dtype].pattern.slots, words.shape[0]
    indices = np.ones((rows, words.shape[1] * words.itemsize * 2, slots), np.uint8)
    illegal = np.ones(rows, np.int64)
    arrays = {"metadata": words, "indices": indices, "illegal": illegal}
    program = verify(decode_metadata_program(dtype, metadata_dtype=metadata_dtype))
    run(program, arrays | {"m": rows, "words": words.shape[1]})
    return indices, illegal


def encoded_by_program(indices, dtype, metadata_dtype):
    """The words and the numbers of groups with wrong indices."""
    rows, groups = indices.shape[:2]
    nibbles = np.dtype(metadata_dtype).itemsize * 2
    words = np.ones((rows, -(-groups // nibbles)), f"u{metadata_dtype}")
    illegal = np.ones(rows, np.int64)
    arrays = {"indices": indices, "metadata": words, "illegal": illegal}
    program = verify(encode_metadata_program(dtype, metadata_dtype=metadata_dtype))
    run(program, arrays | {"m": rows, "groups": groups, "words": words.shape[1]})
    return words, illegal


@pytest.mark.parametrize("metadata_dtype", METADATA_DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_programs_give_what_numpy_gives(dtype, metadata_dtype):
    matrix, _ = random_n_m(np.random.default_rng(5), (3, 37), dtype)
    metadata = compress(matrix, dtype, metadata_dtype=metadata_dtype).metadata
    expected = decode_metadata(metadata, dtype)
    indices, illegal = decoded_by_program(
        metadata.view(f"u{metadata_dtype}"), dtype, metadata_dtype
    )
    np.testing.assert_array_equal(indices, expected)
    assert not illegal.any()
    # One group less: the last word is filled with those of zeros.
    words, illegal = encoded_by_program(expected[:, :-1].copy(), dtype, metadata_dtype)
    encoded = encode_metadata(expected[:, :-1], dtype, metadata_dtype=metadata_dtype)
    assert words.tobytes() == encoded.tobytes()
    assert not illegal.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_nibble_is_decoded_or_counted(dtype):
    pattern = OPERAND_DTYPES[dtype].pattern
    # Both nibbles of a byte are the same.
    words = (np.arange(16, dtype=np.uint8) * 17)[:, None]
    indices, illegal = decoded_by_program(words, dtype, "int8")
    legal = list(pattern.legal)
    np.testing.assert_array_equal(illegal, np.where(np.isin(np.arange(16), legal), 0, 2))
    expected = decode_metadata(words[legal].view(np.int8), dtype)
    np.testing.assert_array_equal(indices[legal], expected)


@pytest.mark.parametrize(
    ("dtype", "groups", "wrong"),
    [
        ("float16", [[0, 1], [1, 1], [3, 2], [2, 4], [2, 3]], 3),
        ("int4", [[0, 0], [1, 3]], 1),
        ("tfloat32", [[0], [1], [2]], 1),
    ],
)
def test_indices_that_do_not_increase_are_counted(dtype, groups, wrong):
    _, illegal = encoded_by_program(np.array([groups], np.uint8), dtype, "int32")
    assert illegal.tolist() == [wrong]
