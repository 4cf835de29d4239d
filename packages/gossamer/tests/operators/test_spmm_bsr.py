"""SciPy's BSR matrices through the public API, against NumPy in float64; bool and integer patterns for
SDDMM.
"""

from __future__ import annotations

import numpy as np
import pytest
from block_grids import GRIDS
from scipy import sparse

import gossamer as gs
from gossamer_ir.errors import ArgumentError, FormatError


class InBlocks(sparse.bsr_array):
    """A BSR matrix that fails when it is converted."""

    def tocsr(self, copy=False):
        raise AssertionError("converted to CSR")


def blocks(grid, shape, *, dtype="float32", index="int32"):
    rows, columns = grid.nonzero()
    indptr = np.concatenate([[0], np.bincount(rows, minlength=len(grid)).cumsum()])
    values = np.random.default_rng(3).integers(-3, 4, (len(rows), *shape)).astype(dtype)
    size = (grid.shape[0] * shape[0], grid.shape[1] * shape[1])
    arrays = (values, columns.astype(index), indptr.astype(index))
    return InBlocks(arrays, shape=size, blocksize=shape)


def dense_for(matrix, features, *, dtype="float32"):
    values = np.random.default_rng(features).integers(-3, 4, (matrix.shape[1], features))
    return values.astype(dtype)


def product(matrix, dense):
    return sparse.bsr_array(matrix).toarray().astype(np.float64) @ dense.astype(np.float64)


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (16, 16), (5, 3), (1, 7), (29, 2)])
@pytest.mark.parametrize("name", GRIDS)
def test_blocks_are_multiplied_as_blocks(name, shape):
    matrix = blocks(GRIDS[name], shape)
    for features in (0, 1, 17, 64):
        dense = dense_for(matrix, features)
        np.testing.assert_array_equal(gs.spmm(matrix, dense), product(matrix, dense))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_every_dtype_of_values_and_indices(dtype, index):
    matrix = blocks(GRIDS["empty block rows at both ends"], (3, 4), dtype=dtype, index=index)
    dense = dense_for(matrix, 20, dtype=dtype)
    out = np.full((matrix.shape[0], 20), np.nan, dtype)
    assert gs.spmm(matrix, dense, out=out) is out
    np.testing.assert_array_equal(out, product(matrix, dense))


def test_blocks_may_be_unsorted_and_stored_twice():
    matrix = blocks(GRIDS["one dense block row"], (2, 3))
    matrix.indices = np.array([4, 0, 0, 8, 1, 2, 3, 5, 4], np.int32)
    dense = dense_for(matrix, 5)
    np.testing.assert_array_equal(gs.spmm(matrix, dense), product(matrix, dense))


def test_spare_blocks_at_the_end_are_not_read():
    matrix = blocks(GRIDS["one dense block column"], (2, 2))
    expected = product(matrix, dense_for(matrix, 4))
    matrix.data = np.concatenate([matrix.data, np.full((1, 2, 2), np.nan, np.float32)])
    matrix.indices = np.concatenate([matrix.indices, np.array([999], np.int32)])
    np.testing.assert_array_equal(gs.spmm(matrix, dense_for(matrix, 4)), expected)


def test_operands_that_lie_elsewhere_in_memory():
    matrix = blocks(GRIDS["one dense block row"], (4, 2))
    dense = np.asfortranarray(dense_for(matrix, 9))
    dense.setflags(write=False)
    expected = product(matrix, dense)
    np.testing.assert_array_equal(gs.spmm(matrix, dense), expected)
    matrix.data = np.asfortranarray(matrix.data)
    np.testing.assert_array_equal(gs.spmm(matrix, dense), expected)


def test_nan_and_infinity_are_in_their_rows_only():
    matrix = blocks(GRIDS["empty block rows at both ends"], (2, 2))
    matrix.data = np.ones_like(matrix.data)
    dense = dense_for(matrix, 3)
    dense[0], dense[3] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        expected = sparse.bsr_array(matrix).tocsr() @ dense
    np.testing.assert_array_equal(gs.spmm(matrix, dense), expected)


@pytest.mark.parametrize("beta", [0.0, 1.0, 0.5])
def test_factors_scale_and_add(beta):
    matrix = blocks(GRIDS["empty block rows at both ends"], (2, 3))
    dense = dense_for(matrix, 5)
    out = np.full((matrix.shape[0], 5), 6, np.float32)
    assert gs.spmm(matrix, dense, alpha=3, beta=beta, out=out) is out
    np.testing.assert_array_equal(out, 3 * product(matrix, dense) + 6 * beta)


def test_blocks_of_one_element_are_converted_to_csr():
    matrix = sparse.bsr_array(np.eye(3, dtype=np.float32), blocksize=(1, 1))
    np.testing.assert_array_equal(gs.spmm(matrix, np.eye(3, dtype=np.float32)), np.eye(3))


BAD = {
    "indices": (FormatError, "format.range"),
    "indptr": (FormatError, "format.monotone"),
    "dtype": (FormatError, "format.dtype"),
    "dense": (ArgumentError, "operand.shape"),
    "out": (ArgumentError, "operand.overlap"),
}


@pytest.mark.parametrize("what", BAD)
def test_the_wrong_argument_is_named(what):
    matrix = blocks(GRIDS["one dense block row"], (2, 2))
    dense, out = dense_for(matrix, 3), None
    if what == "indices":
        matrix.indices[4] = 99
    elif what == "indptr":
        matrix.indptr[1] = 7
        matrix.indptr[2] = 5
    elif what == "dtype":
        matrix.data = matrix.data.astype(np.int64)
    elif what == "dense":
        dense = dense[:-1]
    else:
        out = matrix.data.reshape(-1)[:30].reshape(10, 3)
    kind, code = BAD[what]
    with pytest.raises(kind) as caught:
        gs.spmm(matrix, dense, out=out)
    assert caught.value.code == code


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.bsr_array])
@pytest.mark.parametrize("native", ["float32", "float64"])
def test_sddmm_takes_patterns_of_bools_and_integers(native, kind, dtype):
    pattern = np.random.default_rng(5).random((7, 9)) < 0.4
    left = np.arange(35, dtype=native).reshape(7, 5)
    right = np.arange(45, dtype=native).reshape(9, 5) - 20
    result = gs.sddmm(kind(pattern.astype(dtype)), left, right)
    assert result.dtype == native
    rows, columns = pattern.nonzero()
    np.testing.assert_array_equal(result, (left @ right.T)[rows, columns])


def test_sddmm_refuses_a_pattern_of_complex_numbers():
    with pytest.raises(FormatError) as caught:
        gs.sddmm(sparse.eye_array(3, dtype=complex), np.ones((3, 2)), np.ones((3, 2)))
    assert caught.value.code == "format.dtype"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", GRIDS)
def test_bound_blocks_are_multiplied_as_blocks(name, dtype):
    matrix = blocks(GRIDS[name], (3, 4), dtype=dtype)
    for features in (0, 1, 17):
        dense = dense_for(matrix, features, dtype=dtype)
        out = np.full((matrix.shape[0], features), np.nan, dtype)
        for check in (False, True):
            step = gs.spmm.bind(matrix, dense, out=out, check=check)
            step()
            np.testing.assert_array_equal(out, product(matrix, dense))
            dense += 1
            step()
            np.testing.assert_array_equal(out, product(matrix, dense))


def test_operands_of_a_product_bound_to_blocks_are_checked():
    matrix = blocks(GRIDS["one block"], (3, 4))
    whole = np.ones((5, 2), np.float32)
    out = whole[1:4]
    cases = {
        "operand.shape": np.ones((3, 2), np.float32),
        "operand.dtype": np.ones((4, 2)),
        "operand.contiguity": np.ones((2, 4), np.float32).T,
        "operand.overlap": whole[:4],
    }
    for code, dense in cases.items():
        with pytest.raises(ArgumentError) as caught:
            gs.spmm.bind(matrix, dense, out=out)
        assert caught.value.code == code
    with pytest.raises(ArgumentError, match=r"operator\.operands"):
        gs.spmm.bind(matrix, out=out)
