"""The kernels of `hyb` store what NumPy stores."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernel import InterpretedKernel
from scipy import sparse

from gossamer_formats import decompose
from gossamer_formats.decomposition.library import hyb as module

MATRICES = {
    "random": sparse.random_array((40, 90), density=0.2, rng=np.random.default_rng(3)),
    "one long row": sparse.coo_array(np.vstack([np.zeros((3, 50)), np.ones((1, 50))])),
    "one long column": sparse.coo_array(np.eye(1, 9, 4) * np.repeat([0, 1, 0], [1, 7, 2])[:, None]),
}
EMPTY = {"no columns": (3, 0), "no rows": (0, 3), "no elements": (4, 5)}


@pytest.fixture
def decompose_by_kernels(monkeypatch):
    """Decompose a matrix of any size by kernels, and count those that run."""
    runs = []

    class Counted(InterpretedKernel):
        def run_trusted(self, *arguments):
            runs.append(self.module.entry)
            super().run_trusted(*arguments)

    def decomposed(matrix, **parameters):
        monkeypatch.setattr(module, "MIN_COMPILED", 0)
        monkeypatch.setattr(module, "find_compiler", lambda: Counted)
        return decompose(matrix, "hyb", **parameters), len(runs)

    return decomposed


@pytest.mark.parametrize(
    "parameters", [{}, {"c": 4}, {"c": 3, "k": 1}, {"c": 100, "k": 5}], ids=str
)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_kernels_store_what_numpy_stores(decompose_by_kernels, matrix, parameters):
    matrix = sparse.csr_array(matrix)
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    expected = decompose(matrix, "hyb", **parameters)
    decomposition, runs = decompose_by_kernels(matrix, **parameters)
    assert runs >= len(expected.parts) > 0
    for part, wanted in zip(decomposition.parts, expected.parts, strict=True):
        assert (part.name, part.tensor.description) == (wanted.name, wanted.tensor.description)
        np.testing.assert_array_equal(part.permutation, wanted.permutation)
        for handle, array in wanted.tensor.arrays.items():
            np.testing.assert_array_equal(part.tensor.arrays[handle], array, strict=True)


@pytest.mark.parametrize("c", [1, 2])
@pytest.mark.parametrize("shape", EMPTY.values(), ids=EMPTY)
def test_a_matrix_without_elements_has_no_parts(decompose_by_kernels, shape, c):
    decomposition, _ = decompose_by_kernels(sparse.csr_array(shape), c=c)
    assert decomposition.parts == ()
