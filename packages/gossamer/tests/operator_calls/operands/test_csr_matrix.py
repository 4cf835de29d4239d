"""Matrices in CSR as operands: whose arrays they have, and rows that are cut into segments."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.operator_calls.operands import csr_matrix as csr_module
from gossamer.operator_calls.operands import long_rows
from gossamer.operator_calls.operands.csr_matrix import csr_matrix, csr_pattern
from gossamer.operator_calls.operator_program import OperatorProgram
from gossamer_ir.errors import FormatError

DENSE = np.array([[1, 0, 2, 3], [0, 0, 0, 0], [4, 5, 6, 7]], np.float32)
SCIPY = sparse.csr_array(DENSE)


def test_a_tensor_in_csr_is_used_as_it_is():
    tensor = gs.from_scipy(SCIPY)
    matrix = csr_matrix(tensor)
    assert matrix.tensor is tensor
    assert all(matrix.arrays[name] is tensor.arrays[name] for name in ("indptr", "indices"))
    assert (matrix.shape, matrix.value_count, matrix.dtype) == ((3, 4), 7, "float32")


def test_a_tensor_in_another_format_is_converted_once():
    tensor = gs.from_scipy(SCIPY).asformat("csc")
    first, second = csr_matrix(tensor), csr_matrix(tensor)
    assert first.arrays["indices"] is second.arrays["indices"]
    assert first.arrays["a"].tolist() == SCIPY.data.tolist()


def test_a_matrix_of_scipy_is_borrowed_for_one_call():
    matrix = csr_matrix(SCIPY)
    assert matrix.tensor is None
    assert np.shares_memory(matrix.arrays["a"], SCIPY.data)
    assert matrix.stats().longest_row == 4


def test_arrays_that_the_caller_can_write_are_checked_at_each_call():
    matrix = SCIPY.copy()
    tensor = gs.from_scipy(matrix, copy=False)
    assert tensor.is_borrowed
    csr_matrix(tensor)
    matrix.indices[0] = 9
    with pytest.raises(FormatError, match=r"Element 0 of 'indices' is 9"):
        csr_matrix(tensor)


@pytest.mark.parametrize("kind", [bool, np.int64, np.uint8])
def test_a_pattern_may_have_integers(kind):
    adjacency = sparse.csr_array(DENSE.astype(kind))
    assert csr_pattern(adjacency, dtype=None).dtype == "float32"
    assert csr_pattern(adjacency, dtype="float64").dtype == "float64"
    with pytest.raises(FormatError):
        csr_matrix(adjacency)


def test_a_program_that_ignores_values_has_no_such_argument():
    matrix, dense = csr_matrix(SCIPY), {"b": DENSE}
    with_values, pattern = (OperatorProgram("p", "", (), values=name) for name in ("a", None))
    assert {*matrix.arguments(with_values, dense)} == {"indptr", "indices", "a", "b"}
    assert {*matrix.arguments(pattern, dense)} == {"indptr", "indices", "b"}


def test_only_sums_of_float32_need_short_rows(monkeypatch):
    matrix = csr_matrix(SCIPY)
    assert not matrix.has_long_rows("float32")
    monkeypatch.setattr(csr_module, "MAX_SUM", 3)
    assert matrix.has_long_rows("float32")
    assert not matrix.has_long_rows("float64")
    monkeypatch.setattr(csr_module, "MAX_SUM", 4)
    assert not matrix.has_long_rows("float32"), "there are more elements, but not in one row"


def test_long_rows_are_cut_into_segments_that_share_the_values(monkeypatch):
    monkeypatch.setattr(long_rows, "SEGMENT_ELEMENTS", 3)
    matrix = csr_matrix(SCIPY)
    segments, starts = matrix.cut_rows()
    assert segments.arrays["indptr"].tolist() == [0, 3, 3, 6, 7]
    assert starts.tolist() == [0, 1, 2]
    assert segments.arrays["a"] is matrix.arrays["a"]
    assert (segments.shape, segments.value_count) == ((4, 4), 7)
