"""Programs that compress and decompress, interpreted, give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from n_m_matrices import random_n_m

from gossamer_cuda_mma_sp.n_m.compress import compress
from gossamer_cuda_mma_sp.n_m.compress_programs import compress_program, decompress_program
from gossamer_cuda_mma_sp.n_m.metadata_words import METADATA_DTYPES
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify


def compressed_by_program(matrix, dtype, metadata_dtype):
    expected = compress(matrix, dtype, metadata_dtype=metadata_dtype)
    rows, words = expected.metadata.shape
    arrays = {
        "x": matrix,
        "values": np.ones_like(expected.values),
        "metadata": np.ones((rows, words), f"u{metadata_dtype}"),
        "excess": np.ones(rows, np.int64),
    }
    sizes = {"m": rows, "n": matrix.shape[1], "words": words}
    run(verify(compress_program(dtype, metadata_dtype=metadata_dtype)), arrays | sizes)
    return expected, arrays, sizes


@pytest.mark.parametrize("metadata_dtype", METADATA_DTYPES)
@pytest.mark.parametrize("dtype", OPERAND_DTYPES)
def test_programs_give_what_numpy_gives(dtype, metadata_dtype):
    matrix, _ = random_n_m(np.random.default_rng(3), (3, 37), dtype)
    expected, arrays, sizes = compressed_by_program(matrix, dtype, metadata_dtype)
    assert arrays["values"].tobytes() == expected.values.tobytes()
    assert arrays["metadata"].tobytes() == expected.metadata.tobytes()
    assert not arrays["excess"].any()
    back = {
        "values": arrays["values"],
        "metadata": arrays["metadata"],
        "x": np.ones_like(matrix),
        "illegal": np.ones(3, np.int64),
    }
    run(verify(decompress_program(dtype, metadata_dtype=metadata_dtype)), back | sizes)
    assert (back["x"] == matrix).all()
    assert not back["illegal"].any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "tfloat32", "float8_e5m2"])
def test_nan_is_an_element_and_a_negative_zero_is_not(dtype):
    operand = OPERAND_DTYPES[dtype]
    bits = f"u{np.dtype(operand.stored_as).itemsize}"
    nan = {"u1": 0x7E, "u2": 0x7FFF, "u4": 0x7FC00000}[bits]
    zero = {"u1": 0x80, "u2": 0x8000, "u4": 0x80000000}[bits]
    matrix = np.array([[zero, nan, zero, zero]], bits).view(operand.stored_as)
    expected, arrays, _ = compressed_by_program(matrix, dtype, "int8")
    assert arrays["values"].tobytes() == expected.values.tobytes()
    assert arrays["metadata"].tobytes() == expected.metadata.tobytes()


def test_groups_without_the_pattern_and_illegal_nibbles_are_counted():
    matrix = np.ones((2, 12), np.int8)
    matrix[0, 2:6] = 0
    arrays = {
        "x": matrix,
        "values": np.zeros((2, 8), np.int8),
        "metadata": np.zeros((2, 1), np.uint16),
        "excess": np.zeros(2, np.int64),
        "illegal": np.zeros(2, np.int64),
    }
    sizes = {"m": 2, "n": 12, "words": 1}
    names = ("x", "values", "metadata", "excess")
    run(compress_program("int8"), {name: arrays[name] for name in names} | sizes)
    assert arrays["excess"].tolist() == [1, 3]
    names = ("values", "metadata", "x", "illegal")
    run(decompress_program("int8"), {name: arrays[name] for name in names} | sizes)
    assert arrays["illegal"].tolist() == [1, 3]
