"""Properties of matrices, against SciPy and counts of dense blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gossamer_heuristics.row_lengths import window_rows
from gossamer_tune import properties_of
from gossamer_tune.properties.matrix_properties import BLOCK_SIZES, DIAGONAL_ROWS
from gossamer_tune.properties.row_sample import GROUP, SAMPLED_ELEMENTS, sample_rows
from gossamer_tune.properties.slices import HEIGHTS, slice_fill


def properties(matrix):
    return properties_of(matrix.shape, matrix.indptr, matrix.indices)


def random_matrix(shape, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return sparse.random_array(shape, density=density, format="csr", rng=rng)


@pytest.mark.parametrize("shape", [(50, 40), (1, 7), (9, 1), (0, 3), (4, 0)])
def test_lengths_of_rows_are_those_of_the_matrix(shape):
    matrix = random_matrix(shape)
    measured, lengths = properties(matrix), np.diff(matrix.indptr)
    assert (measured.rows, measured.columns, measured.nnz) == (*shape, matrix.nnz)
    assert measured.lengths.longest == lengths.max(initial=0)
    assert measured.lengths.empty == int((lengths == 0).sum())
    if shape[0]:
        assert measured.lengths.mean == pytest.approx(lengths.mean())
        assert measured.lengths.deviation == pytest.approx(lengths.std())


@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_the_fill_of_blocks_is_that_of_scipy(size):
    matrix = random_matrix((48, 96), density=0.1)
    blocks = matrix.tobsr((size, size))
    assert properties(matrix).block_fill[size] == pytest.approx(matrix.nnz / blocks.data.size)


def test_diagonals_of_stencils_are_full_and_those_of_random_columns_are_not():
    rows = sparse.diags_array([np.ones(160)] * 3, offsets=[-40, 0, 1], shape=(160, 160)).tocsr()
    parts = [rows[at : at + DIAGONAL_ROWS] for at in range(0, 160, GROUP)]
    slots = sum(
        len({column - row for row, column in zip(*part.nonzero(), strict=True)}) * DIAGONAL_ROWS
        for part in parts
    )
    assert properties(rows).diagonal_fill == sum(part.nnz for part in parts) / slots > 0.8
    # Each slice of the format has diagonals of both halves.
    half = sparse.diags_array([np.arange(96) // 16 % 2 == 0], offsets=[0], dtype=float)
    other = sparse.diags_array([np.arange(96) // 16 % 2 == 1], offsets=[0], dtype=float)
    halves = sparse.csr_array(sparse.hstack([half, other]))
    halves.eliminate_zeros()
    assert properties(halves).diagonal_fill == 0.5
    assert properties(random_matrix((160, 160), density=0.05)).diagonal_fill < 0.2
    assert properties(random_matrix((0, 3))).diagonal_fill == 0


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_large_matrix_is_sampled_by_groups_of_rows(dtype):
    matrix = random_matrix((20_000, 400), density=0.05)
    sample = sample_rows(matrix.indptr.astype(dtype), matrix.indices.astype(dtype))
    assert matrix.nnz > 2 * SAMPLED_ELEMENTS
    assert 0.5 * SAMPLED_ELEMENTS < sample.rows.size < 2 * SAMPLED_ELEMENTS
    dense = matrix.toarray()
    assert np.all(dense[sample.rows, sample.columns] != 0)
    groups = np.unique(sample.rows // GROUP)
    whole = dense.reshape(-1, 400)[np.isin(np.arange(20_000) // GROUP, groups)]
    assert sample.rows.size == np.count_nonzero(whole)


def test_the_band_of_a_diagonal_is_narrow_and_that_of_random_columns_is_wide():
    assert properties(sparse.eye_array(1000, format="csr")).bandwidth == 0
    assert 0.2 < properties(random_matrix((1000, 1000), density=0.01)).bandwidth < 0.5
    wide = sparse.eye_array(100, 1000, k=900, format="csr")
    assert properties(wide).bandwidth > 0.4


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 256, 259, 9000])
def test_the_fill_of_slices_is_that_of_the_longest_row_of_each(rows, height):
    lengths = np.random.default_rng(0).integers(0, 30, rows)
    slots, size = 0, window_rows(rows)
    for begin in range(0, rows, size):
        window = sorted(lengths[begin : begin + size].tolist(), reverse=True)
        slots += sum(height * window[first] for first in range(0, len(window), height))
    assert slice_fill(lengths, height=height) == (lengths.sum() / slots if slots else 1.0)
