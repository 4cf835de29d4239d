"""The matrix cases and strategies have the properties that they document."""

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from gossamer_testkit import Csr, csr_cases, csr_matrices, dense_operands, from_mask

QUICK = settings(max_examples=60, deadline=None)


def require_valid(matrix):
    height, width = matrix.shape
    assert matrix.indptr.shape == (height + 1,)
    assert matrix.indptr[0] == 0
    assert (np.diff(matrix.indptr) >= 0).all()
    assert matrix.indices.shape == matrix.data.shape == (matrix.nnz,)
    assert ((matrix.indices >= 0) & (matrix.indices < width)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_all_cases_are_valid_and_of_the_dtypes_asked_for(dtype, index_dtype):
    cases = csr_cases(dtype=dtype, index_dtype=index_dtype)
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        require_valid(case)
        assert case.data.dtype == dtype
        assert case.indptr.dtype == case.indices.dtype == index_dtype
        assert case.is_canonical == (case.name not in ("unsorted", "duplicates"))


def test_the_cases_are_what_their_names_say():
    cases = {case.name: case for case in csr_cases()}
    assert cases["0 rows"].shape == (0, 5)
    assert cases["0 columns"].shape == (5, 0)
    assert cases["0 nonzeros"].nnz == 0
    assert cases["empty rows at both ends"].row_lengths.tolist() == [0] * 3 + [7] * 3 + [0] * 3
    assert cases["1 dense row"].longest_row == cases["1 dense row"].nnz == 101
    assert set(cases["1 dense column"].indices.tolist()) == {20}
    assert cases["1 dense column"].nnz == 101
    assert cases["row lengths 0 to 40"].row_lengths.tolist() == list(range(41))
    assert (cases["explicit zeros"].data == 0).any()
    assert np.isnan(cases["nan and infinity"].data).any()
    lengths = cases["a power law"].row_lengths
    assert lengths.max() > 10 * np.median(lengths)


def test_cases_are_the_same_each_time():
    for first, second in zip(csr_cases(), csr_cases(), strict=True):
        np.testing.assert_array_equal(first.data, second.data)
        np.testing.assert_array_equal(first.indices, second.indices)


@QUICK
@given(csr_matrices())
def test_drawn_matrices_are_valid_and_canonical(matrix):
    require_valid(matrix)
    assert matrix.is_canonical
    assert max(matrix.shape) <= 12


@QUICK
@given(csr_matrices(special=False, dtypes=("float64",), index_dtypes=("int64",), largest=3))
def test_what_is_drawn_can_be_narrowed(matrix):
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


def test_a_matrix_from_a_mask_has_no_zeros():
    matrix = from_mask("all", np.ones((20, 20), bool))
    assert (matrix.data != 0).all()
