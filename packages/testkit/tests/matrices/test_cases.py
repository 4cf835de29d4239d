"""The table of edge-case matrices."""

import numpy as np
import pytest
from valid_matrices import require_valid

from gossamer_testkit import csr_cases


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
