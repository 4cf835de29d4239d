"""Matrices of SciPy whose attributes were assigned to: what is wrong is named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats.external_formats.matrix_checks import (
    matrix_values,
    require_arrays,
    require_matrix,
    require_values,
    used_slots,
)
from gossamer_ir.errors import FormatError

MATRIX = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))


def refused(code, text):
    return pytest.raises(FormatError, match=rf"{text}.*\[{code}\]")


def test_only_sparse_matrices_of_the_rank_are_accepted():
    require_matrix(MATRIX)
    require_matrix(sparse.coo_array(np.ones(3)), ndim=None)
    with refused("format.kind", "the type 'ndarray'"):
        require_matrix(MATRIX.toarray())
    with refused("format.dimensions", "1 dimension; expected 2"):
        require_matrix(sparse.coo_array(np.ones(3)))


def test_attributes_must_be_arrays():
    changed = MATRIX.copy()
    require_arrays(changed, "indptr", "indices")
    changed.indices = [0, 1]
    with refused("format.kind", "indices of the matrix has the type 'list'"):
        require_arrays(changed, "indptr", "indices")


def test_there_are_as_many_values_as_the_indices_say():
    require_values(MATRIX, ndim=1, count=2)
    with refused("format.length", r"shape \(2,\); expected 1 dimension, .* at least 3 elements"):
        require_values(MATRIX, ndim=1, count=3)
    with refused("format.length", r"shape \(2,\); expected 3 dimensions"):
        require_values(MATRIX, ndim=3, count=2)


def test_blocks_are_not_empty():
    blocks = sparse.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
    require_values(blocks, ndim=3, count=4)
    blocks.data = np.ones((4, 0, 2))
    with refused("format.length", r"shape \(4, 0, 2\)"):
        require_values(blocks, ndim=3, count=4)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.complex128, np.longdouble])
def test_values_of_other_dtypes_are_refused(dtype):
    with refused("format.dtype", "expected"):
        matrix_values(np.ones(2, dtype), None)


def test_real_values_are_converted_if_a_dtype_is_given():
    values = matrix_values(np.array([1, 2]), "float32")
    assert (values.dtype, values.tolist()) == (np.dtype("float32"), [1.0, 2.0])
    assert np.isinf(matrix_values(np.array([1e300]), "float32")).all()
    with refused("format.dtype", "expected real numbers"):
        matrix_values(np.ones(2, np.complex64), "float32")


def test_values_become_native_and_contiguous():
    values = np.arange(6, dtype=">f8")[::2]
    result = matrix_values(values, None)
    assert result.dtype == np.dtype("float64")
    assert result.flags.c_contiguous
    assert result.tolist() == [0.0, 2.0, 4.0]
    plain = np.ones(3)
    assert np.shares_memory(matrix_values(plain, None), plain)


@pytest.mark.parametrize(
    ("indptr", "count"),
    [([0, 1, 3], 3), ([0, 1, 2], 2), ([0, 1, 9], 4), ([0, 1, -1], 4), ([], 4), ([0.0, 2.0], 4)],
)
def test_slots_after_the_last_row_are_unused(indptr, count):
    assert used_slots(np.array(indptr), np.zeros(4, int)) == count
