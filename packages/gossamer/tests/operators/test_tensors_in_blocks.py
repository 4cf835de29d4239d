"""`spmm` of tensors in BSR: block by block if the blocks divide the matrix, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands.csr_matrix import CsrMatrix
from gossamer.operator_calls.operands.stored_matrix import StoredMatrix
from gossamer.operators.spmm import checked_operands
from gossamer_ir.errors import ArgumentError, FormatError


def blocks(shape, size, dtype=np.float32):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array(shape, density=0.2, format="csr", dtype=dtype, rng=rng)
    matrix.data = integers(matrix.nnz, dtype)
    height, width = size
    return matrix, gs.from_scipy(matrix).asformat("bsr", block_rows=height, block_columns=width)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(2, 3), (4, 4), (1, 5)])
@pytest.mark.parametrize("features", [1, 7, 64])
def test_whole_blocks_are_multiplied_as_blocks(size, features, dtype):
    matrix, tensor = blocks((24, 60), size, dtype)
    dense = integers((60, features), dtype)
    assert type(checked_operands(tensor, dense).matrix) is StoredMatrix
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
    out = integers((24, features), dtype, seed=2)
    expected = 2 * (matrix @ dense) + 3 * out
    assert np.array_equal(gs.spmm(tensor, dense, alpha=2.0, beta=3.0, out=out), expected)
    bound = gs.spmm.bind(tensor, dense, out=out)
    bound()
    assert np.array_equal(out, matrix @ dense)


@pytest.mark.parametrize(
    ("shape", "size"), [((25, 60), (2, 3)), ((24, 61), (4, 4)), ((24, 60), (1, 1))]
)
def test_other_blocks_are_converted(shape, size):
    matrix, tensor = blocks(shape, size)
    dense = integers((shape[1], 8))
    assert isinstance(checked_operands(tensor, dense).matrix, CsrMatrix)
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)


def test_blocks_of_a_borrowed_tensor_are_checked_at_each_call():
    matrix, _ = blocks((24, 60), (4, 4))
    stored = matrix.tobsr((4, 4))
    tensor = gs.from_scipy(stored, format="same", copy=False)
    dense = integers((60, 8))
    assert tensor.format == "bsr"
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
    stored.indices[0] = 99
    with pytest.raises(FormatError):
        gs.spmm(tensor, dense)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_later_calls_use_a_plan(dtype):
    matrix, tensor = blocks((24, 60), (2, 3), dtype)
    gs.spmm.forget()
    for seed in (1, 2, 3):
        dense = integers((60, 7), dtype, seed)
        assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
        out = np.full((24, 7), np.nan, dtype)
        assert gs.spmm(tensor, dense, out=out) is out
        assert np.array_equal(out, matrix @ dense)
        assert len(gs.spmm.plans) == 1
    # A matrix of another size, with blocks of the same size.
    other, tensor = blocks((48, 30), (2, 3), dtype)
    dense = integers((30, 7), dtype)
    assert np.array_equal(gs.spmm(tensor, dense), other @ dense)
    assert len(gs.spmm.plans) == 2, "one for each class of sizes"


def test_unusual_operands_of_later_calls_are_converted_or_refused():
    matrix, tensor = blocks((24, 60), (2, 3))
    dense = integers((60, 8))
    expected = matrix @ dense
    gs.spmm(tensor, dense)
    assert np.array_equal(gs.spmm(tensor, np.asfortranarray(dense)), expected)
    assert np.array_equal(
        gs.spmm(tensor, integers((60, 16))[:, ::2]), matrix @ integers((60, 16))[:, ::2]
    )
    assert np.array_equal(gs.spmm(tensor, dense[:, 0].copy()), expected[:, 0])
    assert gs.spmm(tensor, dense[:, :0]).shape == (24, 0)
    memory = np.zeros((84, 8), np.float32)
    wrong = [
        (dense[:57], None),
        (dense[:-1], None),
        (dense.astype(np.float64), None),
        (dense, np.empty((24, 8), order="F", dtype=np.float32)),
        (dense, np.empty((12, 2, 8), np.float32)),
        (memory[:60], memory[40:64]),
    ]
    for operand, out in wrong:
        with pytest.raises(ArgumentError):
            gs.spmm(tensor, operand, out=out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [100, 256])
def test_an_operand_that_is_packed(features, dtype):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((96, 64), density=0.9, format="csr", dtype=dtype, rng=rng)
    matrix.data = integers(matrix.nnz, dtype)
    tensor = gs.from_scipy(matrix).asformat("bsr", block_rows=8, block_columns=4)
    dense = integers((64, features), dtype)
    assert np.array_equal(gs.spmm(tensor, dense), matrix @ dense)
