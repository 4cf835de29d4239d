"""A random matrix, and the check that its parts have each element once."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gossamer_formats import SparseTensor


def matrix(shape=(30, 20), density=0.3, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    random = sparse.random_array(shape, density=density, format="csr", rng=rng, dtype=dtype)
    random.data = np.arange(1, random.nnz + 1, dtype=dtype)
    return random


def require_parts_of(decomposition, expected):
    """Requires that the parts have each element of a matrix once, and that the permutations are right."""
    assert np.array_equal(decomposition.toarray(), expected.toarray())
    places = [part.permutation[part.permutation >= 0] for part in decomposition.parts]
    assert sorted(np.concatenate([np.zeros(0, int), *places])) == list(range(expected.nnz))
    for part in decomposition.parts:
        stored = part.permutation >= 0
        values = part.tensor.storage.values
        assert np.array_equal(values[stored], expected.data[part.permutation[stored]])
        assert not values[~stored].any()
        SparseTensor(part.tensor.storage)  # checks its arrays


def left_of_4(_rows, columns):
    return columns < 4
