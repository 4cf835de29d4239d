"""Properties of matrices that `gossamer info` prints, against loops over dense matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from gossamer.cli.matrix_properties import Bandwidth, bandwidth_of, row_histogram

SHAPES = [(0, 0), (0, 5), (5, 0), (1, 1), (40, 3), (3, 40), (50, 50)]


@pytest.fixture(params=SHAPES, ids=str)
def matrix(request):
    return sparse.random_array(
        request.param, density=0.15, format="csr", rng=np.random.default_rng(1)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_bandwidth_is_the_distance_of_the_farthest_elements(matrix, dtype):
    rows, columns = matrix.toarray().nonzero()
    expected = ((rows - columns).max(initial=0), (columns - rows).max(initial=0))
    bandwidth = bandwidth_of(matrix.indptr.astype(dtype), matrix.indices.astype(dtype))
    assert bandwidth == Bandwidth(*map(int, expected))


def test_columns_need_not_be_sorted_and_rows_may_be_empty_at_both_ends():
    indptr = np.array([0, 0, 3, 3, 4, 4])
    assert bandwidth_of(indptr, np.array([2, 9, 0, 1])) == Bandwidth(lower=2, upper=8)


def test_each_row_is_in_the_bucket_of_its_length(matrix):
    lengths = np.count_nonzero(matrix.toarray(), axis=1)
    buckets = row_histogram(matrix.indptr)
    for bucket in buckets:
        inside = (bucket.least <= lengths) & (lengths <= bucket.most)
        assert (bucket.rows, bucket.nonzeros) == (inside.sum(), lengths[inside].sum())
    assert sum(bucket.rows for bucket in buckets) == matrix.shape[0]
    assert sum(bucket.nonzeros for bucket in buckets) == matrix.nnz
    for first, second in itertools.pairwise(buckets):
        assert second.least == first.most + 1


def test_long_rows_have_buckets_of_powers_of_two():
    lengths = [2**40, 2**40 + 1, 3, 0]
    buckets = row_histogram(np.cumsum([0, *lengths]))
    assert (buckets[0].least, buckets[0].most, buckets[0].rows) == (0, 0, 1)
    assert [(b.least, b.most, b.rows) for b in buckets[-2:]] == [
        (2**39 + 1, 2**40, 1),
        (2**40 + 1, 2**41, 1),
    ]
