"""Strategies of Hypothesis for matrices and operands."""

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from valid_matrices import require_valid

from gossamer_testkit import Csr, csr_matrices, dense_operands

QUICK = settings(max_examples=60, deadline=None)


@QUICK
@given(csr_matrices())
def test_drawn_matrices_are_valid_and_canonical(matrix):
    require_valid(matrix)
    assert matrix.is_canonical
    assert max(matrix.shape) <= 12


@QUICK
@given(csr_matrices(special=False, dtypes=("float64",), index_dtypes=("int64",), largest=3))
def test_strategies_can_be_restricted(matrix):
    assert np.isfinite(matrix.data).all()
    assert (matrix.data.dtype, matrix.indices.dtype) == ("float64", "int64")
    assert max(matrix.shape) <= 3


NASTY = {
    "0 rows": lambda m: m.shape[0] == 0 < m.shape[1],
    "0 columns": lambda m: m.shape[1] == 0 < m.shape[0],
    "0 nonzeros": lambda m: m.nnz == 0 < min(m.shape),
    "empty rows at both ends": lambda m: m.nnz and not m.row_lengths[0] and not m.row_lengths[-1],
    "a dense row": lambda m: m.shape[1] > 2 and m.longest_row == m.shape[1],
    "a dense column": lambda m: m.shape[0] > 2 and (m.indices == 0).sum() == m.shape[0],
    "an explicit zero": lambda m: (m.data == 0).any(),
    "NaN": lambda m: np.isnan(m.data).any(),
    "infinity": lambda m: np.isinf(m.data).any(),
    "int64 indices": lambda m: m.indices.dtype == "int64" and m.nnz,
}


@pytest.mark.parametrize("is_nasty", NASTY.values(), ids=NASTY.keys())
def test_each_nasty_matrix_is_among_those_drawn(is_nasty):
    first = settings(max_examples=2000, database=None, phases=[Phase.generate])
    example = find(csr_matrices(), is_nasty, settings=first)
    assert isinstance(example, Csr)


@QUICK
@given(dense_operands((2, 3), dtype="float32"))
def test_operands_have_their_shape_and_are_integers(operand):
    assert (operand.shape, operand.dtype) == ((2, 3), "float32")
    np.testing.assert_array_equal(operand, np.rint(operand))


def test_operands_may_be_special():
    strategy = dense_operands((2,), dtype="float64", special=True)
    assert np.isnan(find(strategy, lambda array: np.isnan(array).any())).any()
