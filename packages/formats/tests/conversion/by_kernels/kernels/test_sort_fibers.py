"""Coordinates of fibers are sorted in place, each fiber by itself."""

from __future__ import annotations

import numpy as np
import pytest
from interpreted_kernel import InterpretedKernel

from gossamer_formats.conversion.by_kernels.kernels.sort_fibers import sort_fibers
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder

FIBERS = {
    "no fiber": [],
    "empty fibers": [[], []],
    "one coordinate": [[3]],
    "sorted": [[1, 2, 5], [0, 7]],
    "descending": [[9, 7, 4, 2, 0]],
    "two runs": [[1, 4, 8, 0, 3, 9]],
    "three runs of different lengths": [[5, 6, 1, 2, 3, 0], [], [2, 1]],
}


def sorted_by_kernel(fibers, dtype="int32", offsets_dtype="int32", *, kernel=InterpretedKernel):
    listed = np.array([each for fiber in fibers for each in fiber], dtype)
    offsets = np.cumsum([0, *map(len, fibers)]).astype(offsets_dtype)
    recorder = Recorder(kernel, [listed, listed.size, offsets])
    array, count, starts = map(RecordedValue, range(3))
    sort_fibers(recorder, (array, count), dtype, (starts, offsets_dtype))
    return listed.tolist()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("fibers", FIBERS.values(), ids=FIBERS)
def test_each_fiber_is_sorted(fibers, dtype):
    assert sorted_by_kernel(fibers, dtype) == [each for fiber in fibers for each in sorted(fiber)]


@pytest.mark.parametrize("chunks", [1, 3])
def test_random_fibers_are_sorted_in_any_number_of_threads(chunks):
    class InChunks(InterpretedKernel):
        pass

    InChunks.chunks = chunks
    random = np.random.default_rng(2)
    fibers = [random.permutation(40)[: random.integers(0, 20)].tolist() for _ in range(12)]
    expected = [each for fiber in fibers for each in sorted(fiber)]
    assert sorted_by_kernel(fibers, offsets_dtype="int64", kernel=InChunks) == expected
