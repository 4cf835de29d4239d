"""N:M matrices as operands: slots, incomplete groups, dtypes, and the arguments of kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands.n_m_matrix import n_m_matrix
from gossamer.operators.matmul_24 import PROGRAM
from gossamer_formats import SparseTensor
from gossamer_ir.errors import ArgumentError, FormatError

SLOTS, GROUP = 2, 4


def dense_of(matrix):
    """The matrix as a dense array: each slot is added at its column."""
    dense = np.zeros((matrix.rows, matrix.groups * GROUP), matrix.values.dtype)
    columns = np.arange(matrix.groups)[:, None] * GROUP + matrix.indices
    rows = np.broadcast_to(np.arange(matrix.rows)[:, None, None], columns.shape)
    np.add.at(dense, (rows, columns), matrix.values)
    return dense[:, : matrix.columns]


def all_groups():
    """A row for each set of at most two columns of a group; the second group is incomplete."""
    kept = [bits for bits in range(16) if bits.bit_count() <= SLOTS]
    first = [[bits >> column & 1 for column in range(GROUP)] for bits in kept]
    second = [[bits >> column & 1 for column in (2, 0)] for bits in kept]
    return np.hstack([first, second]) * np.arange(1, 7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_slots_have_all_elements_and_increasing_indices(dtype):
    dense = all_groups().astype(dtype)
    matrix = n_m_matrix(dense)
    assert (matrix.shape, matrix.dtype, matrix.groups) == (dense.shape, dtype, 2)
    assert (np.diff(matrix.indices.astype(int), axis=-1) > 0).all()
    np.testing.assert_array_equal(dense_of(matrix), dense)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_array, np.asfortranarray])
def test_any_form_has_the_same_slots(form):
    dense = all_groups().astype(np.float32)
    one, other = n_m_matrix(dense), n_m_matrix(form(dense))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_array_equal(one.values, other.values)


def test_a_tensor_is_compressed_once_and_keeps_bits_of_bfloat16():
    dense = all_groups().astype(np.float32)
    tensor = SparseTensor(sparse.csr_array(dense)).astype("bfloat16")
    matrix = n_m_matrix(tensor)
    assert n_m_matrix(tensor) is matrix
    assert (matrix.dtype, matrix.values.dtype) == ("bfloat16", np.uint16)
    widened = (matrix.values.astype(np.uint32) << 16).view(np.float32)
    kept = np.take_along_axis(
        np.pad(dense, ((0, 0), (0, 2))).reshape(-1, 2, GROUP), matrix.indices.astype(int), -1
    )
    np.testing.assert_array_equal(widened, kept)


def test_arguments_are_the_parameters_of_the_program():
    matrix = n_m_matrix(gs.prune(np.arange(24.0).reshape(3, 8), "2:4"))
    arguments = matrix.arguments(PROGRAM, {"b": "dense", "c": "result"})
    assert arguments["a"] is matrix.values
    assert arguments["indices"] is matrix.indices
    assert {name: arguments[name] for name in ("b", "c", "m", "groups")} == {
        "b": "dense", "c": "result", "m": 3, "groups": 2,
    }  # fmt: skip


def test_a_slot_of_two_columns_has_one_element():
    dense = np.array([[0, 5, 6, 0, 0, 0, 7]], np.float32)
    matrix = n_m_matrix(dense, "tfloat32")
    assert matrix.values.shape == matrix.indices.shape == (1, 4, 1)
    assert matrix.values.ravel().tolist() == [5, 6, 0, 7]
    assert matrix.indices.ravel().tolist() == [1, 0, 0, 0]


def test_a_slot_of_pairs_has_both_elements():
    dense = np.array([[0, 0, 0, 3, 0, 0, 4, 5, 6]], np.uint8)
    matrix = n_m_matrix(dense, "uint4")
    assert (matrix.values.shape, matrix.indices.shape) == ((1, 2, 2, 2), (1, 2, 2))
    assert matrix.values.tolist() == [[[[0, 3], [4, 5]], [[6, 0], [0, 0]]]]
    assert matrix.indices.tolist() == [[[1, 3], [0, 1]]]
    assert matrix.verified == ("a", "indices")


def test_a_tensor_is_compressed_once_for_each_dtype_of_operands():
    tensor = gs.prune(np.arange(24.0).reshape(3, 8), "1:2").astype("float32")
    matrix = n_m_matrix(tensor, "tfloat32")
    assert n_m_matrix(tensor, "tfloat32") is matrix
    assert n_m_matrix(tensor).values.shape == (3, 2, 2)
    assert matrix.values.shape == (3, 4, 1)


@pytest.mark.parametrize(
    ("dense", "operands", "error", "message"),
    [
        (np.ones((1, 2), np.float32), "tfloat32", FormatError, "2 nonzeros in the columns 0 to 1"),
        (np.ones((1, 9), np.int8), "int4", FormatError, "4 pairs with nonzeros in the columns 0 to 7"),
        (np.eye(2, 8, dtype=np.int8) * -9, "int4", ArgumentError, "row 0 and column 0 is -9"),
        (np.eye(2, 8, dtype=np.uint8) * 16, "uint4", ArgumentError, "values of uint4, from 0 to 15"),
        (np.ones((1, 2)), "tfloat32", ArgumentError, "Convert both operands to float32"),
        (np.ones((1, 2), np.uint8), "int4", ArgumentError, "expected uint8, float8_e4m3"),
        (np.ones((1, 2)), "half", ArgumentError, "cannot be computed in 'half'"),
    ],
)  # fmt: skip
def test_elements_and_operands_must_fit(dense, operands, error, message):
    with pytest.raises(error, match=message):
        n_m_matrix(dense, operands)
