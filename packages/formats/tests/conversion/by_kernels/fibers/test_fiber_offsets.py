"""Offsets of fibers, from lengths and from ends, in dtypes that hold them."""

from __future__ import annotations

import numpy as np
import pytest
from build_state_of import build_state_of, value_of
from scipy import sparse

from gossamer_formats import from_scipy
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    offsets_from_lengths,
    offsets_of_ends,
    offsets_of_lengths,
    slot_total,
    starts_of,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import index, index_var


def axes_of_csr():
    matrix = sparse.csr_array(np.eye(3, dtype=np.float32))
    return build_state_of(from_scipy(matrix).storage, "csc")


def test_lengths_of_a_narrow_dtype_are_summed_in_that_of_the_offsets():
    lengths = np.array([200, 100, 0, 250], np.uint8)
    assert offsets_of_lengths(lengths, "int32").tolist() == [0, 200, 300, 300, 550]
    assert offsets_of_lengths(lengths[:0], "int64").tolist() == [0]


def test_fibers_without_elements_end_where_the_one_before_ends():
    ends = np.array([0, 0, 4, 0, 0, 9, 0])
    offsets = offsets_of_ends(ends)
    assert offsets.tolist() == [0, 0, 4, 4, 4, 9, 9]
    assert starts_of(offsets).tolist() == offsets.tolist()[:-1]


@pytest.mark.parametrize(("most", "dtype"), [(2**31 - 1, "int32"), (2**31, "int64")])
def test_the_dtype_holds_the_largest_number_of_slots(most, dtype):
    axes = axes_of_csr()
    indptr = Indptr("starts", "int32", "I", index_var("nnz"))
    lengths = axes.recorder.compute(np.array, (2, 0, 3))
    offsets = offsets_from_lengths(axes, indptr, lengths=lengths, most=most)
    assert offsets.dtype == dtype
    assert value_of(axes, offsets.total) == 5
    assert {**offsets.storage.slot_counts} == {"nnz": offsets.total}
    assert offsets.storage.arrays["starts"].array == offsets.array


@pytest.mark.parametrize("nnz", [4, 6])
def test_another_number_of_slots_than_the_given_one_is_left_to_numpy(nnz):
    axes = axes_of_csr()
    total = axes.recorder.compute(int, 5)
    with pytest.raises(NotDirectError, match="differs from the one that is given"):
        slot_total(axes, Indptr("starts", "int32", "I", index(nnz)), total)
    assert slot_total(axes, Indptr("starts", "int32", "I", index(5)), total) == {}
    assert slot_total(axes, Indptr("starts", "int32", "I", None), total) == {}
