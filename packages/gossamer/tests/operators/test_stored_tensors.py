"""Operators that compute with a tensor in its own format, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands.stored_matrix import stored_matrix
from gossamer.operators.spmm import PROGRAM as SPMM
from gossamer.operators.spmv import PROGRAM as SPMV
from gossamer_formats import SparseTensor, from_scipy
from gossamer_ir.errors import ArgumentError, FormatError
from gossamer_testkit.matrices.oracles import tolerance

SHAPES = [(50, 40), (8, 3), (1, 7), (9, 1), (0, 3), (4, 0), (67, 1000)]
HEIGHTS = [2, 6, 8, 12, 24]


def matrix(shape, dtype="float32", *, index="int32", seed=0):
    rng = np.random.default_rng(seed)
    random = sparse.random_array(shape, density=0.2, format="lil", rng=rng, dtype=dtype)
    random[3:6] = 0
    if shape[0] > 10:
        random[9] = 1
        random[0] = random[shape[0] - 1] = 0
    random = random.tocsr()
    random.data = rng.integers(-4, 5, random.nnz).astype(dtype)
    random.indptr, random.indices = random.indptr.astype(index), random.indices.astype(index)
    return random


def is_converted(tensor):
    return tensor.kept_csr is not None


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_slices_times_a_vector_are_not_converted(shape, dtype, height):
    stored = matrix(shape, dtype)
    A = from_scipy(stored).asformat("sell", height=height, sigma=16)
    x = integers(shape[1], dtype)
    for _ in range(3):
        assert np.array_equal(gs.spmv(A, x), stored @ x)
    out = np.full(shape[0], np.nan, dtype)
    assert gs.spmv(A, x, out=out) is out
    assert np.array_equal(out, stored @ x)
    assert np.array_equal(A @ x, stored @ x)
    assert np.array_equal(gs.spmv(A, x[:, None]), (stored @ x)[:, None])
    assert not is_converted(A)


@pytest.mark.parametrize("block", [(2, 2), (3, 3), (1, 4), (4, 1), (6, 3), (3, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(6, 6), (3, 9), (30, 15), (96, 54), (0, 3), (90, 900)])
def test_slices_of_block_rows_times_a_vector(shape, dtype, block):
    """Matrices of whole blocks are not converted to CSR, the others are."""
    stored, (rows, columns) = matrix(shape, dtype), block
    A = from_scipy(stored).asformat(
        "blocked_sell", block_rows=rows, block_columns=columns, height=8, sigma=16
    )
    assert (A.toarray() == stored.toarray()).all()
    x = integers(shape[1], dtype)
    for _ in range(3):
        assert np.array_equal(gs.spmv(A, x), stored @ x)
    out = integers(shape[0], dtype, seed=2)
    expected = 2 * (stored @ x) + 3 * out
    assert np.array_equal(gs.spmv(A, x, alpha=2.0, beta=3.0, out=out), expected)
    # Rows are tested where they are stored, so only columns must be those of whole blocks. Blocks of one row
    # and one column would be elements.
    assert is_converted(A) == (shape[1] % columns > 0)


def test_wide_indices_and_a_height_without_vectors_are_converted_or_computed_alike():
    stored = matrix((50, 40), index="int64")
    x = integers(40)
    for parameters in ({"height": 8}, {"height": 7}):
        A = from_scipy(stored).asformat("sell", **parameters)
        assert np.array_equal(gs.spmv(A, x), stored @ x)


def test_tensors_of_similar_sizes_share_a_plan():
    gs.spmv.forget()
    for rows in (40, 4000, 41):
        stored = matrix((rows, 300), seed=rows)
        A = from_scipy(stored).asformat("sell")
        x = integers(300, seed=rows)
        for _ in range(2):
            assert np.array_equal(gs.spmv(A, x), stored @ x)
    # One for each class of sizes.
    assert len(gs.spmv.plans) == 2


def test_factors_scale_and_add():
    stored = matrix((50, 40))
    A, x = from_scipy(stored).asformat("sell"), integers(40)
    out = integers(50, seed=2)
    expected = 2 * (stored @ x) + 3 * out
    assert gs.spmv(A, x, alpha=2.0, beta=3.0, out=out) is out
    assert np.array_equal(out, expected)
    assert np.array_equal(gs.spmv(A, x, alpha=-1.0), -(stored @ x))
    assert not is_converted(A)


def test_a_bound_call_reads_its_arrays_again():
    stored = matrix((50, 40))
    A, x, y = from_scipy(stored).asformat("sell"), integers(40), np.empty(50, np.float32)
    step = gs.spmv.bind(A, x, out=y)
    x[:] = integers(40, seed=5)
    step()
    assert np.array_equal(y, stored @ x)


@pytest.mark.parametrize("height", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_groups_of_rows_in_any_order_times_a_matrix_are_not_converted(shape, dtype, height):
    stored = matrix(shape, dtype)
    order = np.random.default_rng(4).permutation(shape[0])
    A = from_scipy(stored).asformat("row_groups", height=height, order=order)
    assert A.arrays["rows"][: shape[0]].tolist() == order.tolist()
    for features in (1, 7, 16, 40, 130):
        B = integers((shape[1], features), dtype)
        expected = stored @ B
        for _ in range(2):
            assert np.array_equal(gs.spmm(A, B), expected)
        out = np.full((shape[0], features), np.nan, dtype)
        assert gs.spmm(A, B, out=out) is out
        assert np.array_equal(out, expected)
        out = integers((shape[0], features), dtype, seed=6)
        expected = 2 * expected + 3 * out
        assert np.array_equal(gs.spmm(A, B, alpha=2.0, beta=3.0, out=out), expected)
    assert not is_converted(A)


def test_groups_of_many_vectors_are_not_too_much_code():
    stored = matrix((50, 40))
    B = integers((40, 256))
    assert np.array_equal(
        gs.spmm(from_scipy(stored).asformat("row_groups", height=4), B), stored @ B
    )


def test_absent_elements_are_not_multiplied():
    stored = matrix((50, 40))
    A, x = from_scipy(stored).asformat("sell"), integers(40)
    x[7], x[39] = np.nan, np.inf
    assert np.array_equal(gs.spmv(A, x), stored @ x, equal_nan=True)


def test_several_threads_give_the_same_result():
    rng = np.random.default_rng(3)
    stored = sparse.random_array(
        (30_000, 2_000), density=0.004, format="csr", rng=rng, dtype="float32"
    )
    A, x = from_scipy(stored).asformat("sell"), rng.random(2_000, dtype=np.float32)
    before, results = gs.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            gs.set_num_threads(count)
            results.append(gs.spmv(A, x))
    finally:
        gs.set_num_threads(before)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    longest = int(np.diff(stored.indptr).max())
    expected = stored.astype(float) @ x
    np.testing.assert_allclose(results[0], expected, rtol=tolerance(longest, "float32"))


@pytest.mark.parametrize("name", ["coo", "ell", "dcsr", "csc"])
def test_formats_without_such_a_schedule_are_converted_once(name):
    stored = matrix((50, 40))
    A, B = from_scipy(stored).asformat(name), integers((40, 5))
    assert stored_matrix(SPMV, A) is None
    assert stored_matrix(SPMM, A) is None
    for _ in range(2):
        assert np.array_equal(gs.spmv(A, B[:, 0]), stored @ B[:, 0])
        assert np.array_equal(gs.spmm(A, B), stored @ B)
    assert is_converted(A)


def test_a_converted_tensor_has_a_plan():
    A, B = from_scipy(matrix((50, 40))).asformat("coo"), integers((40, 5))
    gs.spmm.forget()
    expected = gs.spmm(A, B)
    assert len(gs.spmm.plans) == 1
    assert np.array_equal(gs.spmm(A, B), expected)


def test_a_tensor_that_borrows_its_arrays_is_checked_at_each_call():
    stored = matrix((50, 40))
    owned = from_scipy(stored).asformat("sell")
    arrays = {name: np.array(array) for name, array in owned.arrays.items()}
    A = SparseTensor.from_borrowed(owned.storage._replace(arrays=arrays))
    x = integers(40)
    assert np.array_equal(gs.spmv(A, x), stored @ x)
    arrays["indices"][0] = 41
    with pytest.raises(FormatError):
        gs.spmv(A, x)


def test_wrong_operands_are_refused():
    A = from_scipy(matrix((50, 40))).asformat("sell")
    with pytest.raises(ArgumentError) as caught:
        gs.spmv(A, integers(41))
    assert caught.value.code == "operand.shape"
    x = integers(50)
    with pytest.raises(ArgumentError) as caught:
        gs.spmv(A, x[:40], out=x)
    assert caught.value.code == "operand.overlap"
