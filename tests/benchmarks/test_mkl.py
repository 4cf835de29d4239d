"""The bindings to MKL: products in CSR and in blocks, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.contenders import mkl_library
from benchmarks.contenders.contender import UnavailableError
from benchmarks.contenders.mkl_blocks import MklBlocks
from benchmarks.contenders.mkl_library import MklMatrix, library_path, load_mkl, set_mkl_threads

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

needs_mkl = pytest.mark.skipif(
    library_path() is None, reason="MKL is not installed beside this Python"
)


@needs_mkl
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mkl_multiplies_rows(dtype, optimize):
    random = np.random.default_rng(1)
    exact = (random.integers(-3, 4, (20, 30)) * (random.random((20, 30)) < 0.3)).astype(dtype)
    matrix, dense = sparse.csr_matrix(exact), random.integers(-3, 4, (30, 5)).astype(dtype)
    out, vector = np.empty((20, 5), dtype), np.empty(20, dtype)
    set_mkl_threads(2)
    MklMatrix(matrix, features=5, optimize=optimize).product(dense, out)()
    np.testing.assert_array_equal(out, exact @ dense)
    column = dense[:, 0].copy()
    MklMatrix(matrix, features=None, optimize=optimize).product(column, vector)()
    np.testing.assert_array_equal(vector, exact @ column)
    for left, right in ((dense[:, ::2], out), (dense, vector), (column[:0], vector)):
        with pytest.raises(ValueError, match="do not fit"):
            MklMatrix(matrix, features=5).product(left, right)


@needs_mkl
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mkl_multiplies_blocks(dtype, optimize):
    random = np.random.default_rng(1)
    mask = np.kron(random.random((5, 7)) < 0.5, np.ones((4, 4)))
    dense = (random.integers(-3, 4, (20, 28)) * mask).astype(dtype)
    blocks = sparse.bsr_array(dense, blocksize=(4, 4))
    operand, out = random.integers(-3, 4, (28, 5)).astype(dtype), np.empty((20, 5), dtype)
    MklBlocks(blocks, features=5, optimize=optimize).product(operand, out)()
    np.testing.assert_array_equal(out, dense @ operand)


def test_blocks_that_are_not_square_are_refused():
    blocks = sparse.bsr_array(np.ones((8, 8)), blocksize=(4, 2))
    with pytest.raises(UnavailableError, match="4 x 2"):
        MklBlocks(blocks, features=5)


def test_without_mkl_the_reason_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(mkl_library, "library_path", lambda: None)
    load_mkl.cache_clear()
    with pytest.raises(UnavailableError, match="pip install mkl"):
        set_mkl_threads(1)


def test_an_unknown_threading_layer_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(mkl_library, "library_path", lambda: tmp_path / "libmkl_rt.so")
    monkeypatch.setenv("MKL_THREADING_LAYER", "fast")
    load_mkl.cache_clear()
    with pytest.raises(UnavailableError, match="MKL_THREADING_LAYER is 'fast'"):
        set_mkl_threads(1)
