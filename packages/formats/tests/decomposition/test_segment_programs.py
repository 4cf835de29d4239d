"""The programs of `hyb` store what NumPy stores."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_program import InterpretedProgram
from scipy import sparse

from gossamer_formats import decompose
from gossamer_formats.decomposition.composable import hyb as module

MATRICES = {
    "random": sparse.random_array((40, 90), density=0.2, rng=np.random.default_rng(3)),
    "no columns": sparse.coo_array((3, 0)),
    "no rows": sparse.coo_array((0, 3)),
    "one long row": sparse.coo_array(np.vstack([np.zeros((3, 50)), np.ones((1, 50))])),
}


@pytest.mark.parametrize(
    "parameters", [{}, {"c": 4}, {"c": 3, "k": 1}, {"c": 100, "k": 5}], ids=str
)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
def test_programs_store_what_numpy_stores(monkeypatch, matrix, parameters):
    matrix = sparse.csr_array(matrix)
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    expected = decompose(matrix, "hyb", **parameters)
    monkeypatch.setattr(module, "MIN_COMPILED", 0)
    monkeypatch.setattr(module, "find_compiler", lambda: InterpretedProgram)
    found = decompose(matrix, "hyb", **parameters)
    for part, wanted in zip(found.parts, expected.parts, strict=True):
        assert (part.name, part.tensor.description) == (wanted.name, wanted.tensor.description)
        np.testing.assert_array_equal(part.permutation, wanted.permutation)
        for handle, array in wanted.tensor.arrays.items():
            np.testing.assert_array_equal(part.tensor.arrays[handle], array, strict=True)
