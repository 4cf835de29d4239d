"""A matrix in several formats."""

import numpy as np
import pytest
import scipy.sparse

from gossamer_formats import SparseTensor

FORMATS = {
    "csr": {},
    "coo": {},
    "csc": {},
    "ell": {},
    "dia": {},
    "sell": {},
    "bsr": {"block_rows": 2, "block_columns": 2},
}


@pytest.fixture(scope="session")
def matrix():
    matrix = scipy.sparse.random(9, 7, 0.3, "csr", np.float64, np.random.default_rng(5))
    matrix.data -= 0.5
    return matrix


@pytest.fixture(params=FORMATS, scope="session")
def tensor(request, matrix):
    return SparseTensor(matrix).asformat(request.param, **FORMATS[request.param])
