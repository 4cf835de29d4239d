"""Blocks times a vector, with the columns of a block in lanes, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import from_scipy

SIZES = [(1, 4), (2, 5), (3, 3), (4, 19), (16, 16), (17, 4), (3, 2)]


def blocks(height, width, dtype):
    """A matrix of 40 by 30 blocks with small integers, and empty block rows."""
    random = np.random.default_rng(10 * height + width)
    pattern = sparse.random_array((40, 30), density=0.1, format="csr", rng=random)
    data = random.integers(-4, 5, (pattern.nnz, height, width)).astype(dtype)
    arrays = (data, pattern.indices, pattern.indptr)
    return sparse.bsr_array(arrays, (40 * height, 30 * width))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_products_with_blocks_are_those_of_scipy(size, dtype, threads):
    matrix = blocks(*size, dtype)
    x = np.random.default_rng(1).integers(-3, 4, matrix.shape[1]).astype(dtype)
    before = gs.get_num_threads()
    gs.set_num_threads(threads)
    try:
        y = gs.spmv(matrix, x)
        stored = from_scipy(matrix).asformat("bsr", block_rows=size[0], block_columns=size[1])
        scaled = gs.spmv(stored, x, alpha=2.0, beta=3.0, out=y.copy())
    finally:
        gs.set_num_threads(before)
    np.testing.assert_array_equal(y, matrix.astype(np.float64) @ x)
    np.testing.assert_array_equal(scaled, 5 * y)


def test_prepare_finds_the_blocks_and_multiplies_a_vector_faster():
    random = np.random.default_rng(0)
    pattern = sparse.random_array((600, 600), density=0.03, format="csr", rng=random)
    matrix = sparse.csr_array(sparse.kron(pattern, np.ones((4, 4))))
    matrix.data[:] = random.integers(1, 5, matrix.nnz)
    stored = gs.prepare(matrix, "spmv", calls=10**6)
    assert stored.format in (
        "bsr",
        "blocked_sell",
    )  # which of them is faster depends on the machine
    parameters = gs.explain(stored).chosen.parameters
    assert (parameters["block_rows"], parameters["block_columns"]) == (4, 4)
    x = random.integers(-3, 4, matrix.shape[1]).astype(np.float64)
    np.testing.assert_array_equal(gs.spmv(stored, x), matrix @ x)
