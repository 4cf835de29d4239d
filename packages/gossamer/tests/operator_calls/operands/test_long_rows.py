"""Rows that are cut into segments: each segment is short, and the segments of a row are the whole row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.operator_calls.operands import long_rows


@pytest.fixture(autouse=True, scope="module")
def short_blocks():
    """Blocks of 4 elements, so that short rows are cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_rows, "SEGMENT_ELEMENTS", 4)
        yield


@given(st.lists(st.integers(0, 13), min_size=1, max_size=8), st.sampled_from(["int32", "int64"]))
def test_the_sums_of_blocks_are_those_of_rows(lengths, dtype):
    indptr = np.cumsum([0, *lengths]).astype(dtype)
    values = np.arange(1, indptr[-1] + 1)
    offsets, starts = long_rows.segment_offsets(indptr)
    assert offsets.dtype == dtype
    assert offsets[0] == 0
    assert offsets[-1] == indptr[-1]
    sizes = np.diff(offsets)
    assert np.all((sizes >= 0) & (sizes <= 4))
    assert [*offsets[starts]] == [*indptr[:-1]]
    segments = [values[begin:end].sum() for begin, end in itertools.pairwise(offsets)]
    rows = [values[begin:end].sum() for begin, end in itertools.pairwise(indptr)]
    assert np.add.reduceat(segments, starts).tolist() == rows


@pytest.mark.parametrize(("length", "segments"), [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_row_has_no_more_segments_than_it_needs(length, segments):
    offsets, starts = long_rows.segment_offsets(np.array([0, length]))
    assert (len(offsets) - 1, [*starts]) == (segments, [0])
