"""Diagonals in slices of rows times a vector, with the rows of a slice in lanes, against SciPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import from_scipy


def stencil(shape, offsets, dtype, *, besides=0.001):
    """A matrix of some diagonals with small integers, and a few elements besides."""
    random = np.random.default_rng(shape[0])
    matrix = sparse.diags_array(
        [np.ones(shape[1])] * len(offsets), offsets=offsets, shape=shape
    ) + sparse.random_array(shape, density=besides, rng=random)
    matrix = sparse.csr_array(matrix, dtype=dtype)
    matrix.data[:] = random.integers(-4, 5, matrix.nnz)
    return matrix


@pytest.mark.parametrize(
    ("shape", "height", "dtype"),
    [
        ((320, 320), 32, "float32"),
        ((333, 300), 32, "float64"),
        ((90, 170), 16, "float64"),
        ((31, 40), 32, "float32"),
        ((50, 50), 7, "float32"),
    ],
)
def test_products_with_diagonals_are_those_of_scipy(shape, height, dtype):
    matrix = stencil(shape, (-20, -1, 0, 3, 30), dtype)
    x = np.random.default_rng(1).integers(-3, 4, shape[1]).astype(dtype)
    stored = from_scipy(matrix).asformat("sliced_dia", height=height)
    y = gs.spmv(stored, x)
    scaled = gs.spmv(stored, x, alpha=2.0, beta=3.0, out=y.copy())
    np.testing.assert_array_equal(y, matrix.astype(np.float64) @ x)
    np.testing.assert_array_equal(scaled, 5 * y)


def test_prepare_finds_the_diagonals():
    matrix = stencil((4000, 4000), (-63, -1, 0, 1, 63), "float64", besides=0)
    # Vectors of 512 bits hold twice as many elements of a diagonal as those of this machine may.
    target = "generic-cpu:vector_bits=512,gathers=fast,l2=2097152,l3=16777216,cores=2"
    stored = gs.prepare(matrix, "spmv", calls=10**6, target=target)
    assert stored.format == "sliced_dia"
    x = np.random.default_rng(0).integers(-3, 4, 4000).astype(np.float64)
    np.testing.assert_array_equal(gs.spmv(stored, x), matrix @ x)
