"""Checks of CSR matrices that tests draw."""

import numpy as np


def require_valid(matrix):
    height, width = matrix.shape
    assert matrix.indptr.shape == (height + 1,)
    assert matrix.indptr[0] == 0
    assert (np.diff(matrix.indptr) >= 0).all()
    assert matrix.indices.shape == matrix.data.shape == (matrix.nnz,)
    assert ((matrix.indices >= 0) & (matrix.indices < width)).all()
