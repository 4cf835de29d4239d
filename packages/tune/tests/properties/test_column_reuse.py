"""The reuse of columns, against caches that replace the row that was used least recently."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from scipy import sparse

from gossamer_tune import properties_of, with_row_order
from gossamer_tune.properties import column_reuse as module
from gossamer_tune.properties.column_reuse import ColumnReuse, column_reuse


def missing(columns, capacity):
    """The fraction of columns that are not in the cache at the second of two calls."""
    held, misses = OrderedDict(), [0, 0]
    for call in range(2):
        for column in columns:
            misses[call] += column not in held
            held[column] = None
            held.move_to_end(column)
            if len(held) > capacity:
                held.popitem(last=False)
    return misses[1] / len(columns)


MATRICES = {
    "random": sparse.random_array(
        (500, 700), density=0.02, format="csr", rng=np.random.default_rng(1)
    ),
    "band": sparse.csr_array(sparse.eye_array(900, k=3) + sparse.eye_array(900, k=-40)),
    "dense columns": sparse.csr_array(
        np.random.default_rng(2).random((60, 300)) < np.linspace(0.9, 0.0, 300) ** 4
    ),
}


@pytest.mark.parametrize("capacity", [3, 30, 100, 250, 2000])
@pytest.mark.parametrize("name", MATRICES)
def test_misses_are_those_of_a_cache(name, capacity):
    matrix = MATRICES[name]
    reuse = column_reuse(matrix.shape[1], matrix.indptr, matrix.indices)
    assert reuse.misses(capacity) == pytest.approx(missing(matrix.indices, capacity), abs=0.12)


def test_other_data_in_the_cache_leave_less_for_rows():
    matrix = MATRICES["random"]
    reuse = column_reuse(700, matrix.indptr, matrix.indices)
    alone, shared = reuse.misses(300), reuse.misses(300, others=1.0)
    assert alone < shared <= reuse.misses(100)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("most", [64, 5000, 1 << 17])
def test_rows_are_visited_in_the_order_that_is_given(dtype, most, monkeypatch):
    monkeypatch.setattr(module, "MAX_LOOKBACK", most)
    matrix = MATRICES["random"]
    order = np.random.default_rng(3).permutation(matrix.shape[0])
    permuted = matrix[order]
    arrays = (matrix.indptr.astype(dtype), matrix.indices.astype(dtype))
    reuse = column_reuse(700, *arrays, order)
    assert reuse == column_reuse(700, permuted.indptr, permuted.indices)


@pytest.mark.parametrize("most", [300, 700, 1 << 17])
def test_all_parts_of_a_matrix_are_looked_at(most, monkeypatch):
    monkeypatch.setattr(module, "MAX_LOOKBACK", most)
    parts = MATRICES["random"][:, :500], sparse.eye_array(300, 500), sparse.eye_array(300, 500, k=9)
    matrix = sparse.vstack(parts, format="csr")
    reuse = column_reuse(500, matrix.indptr, matrix.indices)
    assert reuse.misses(250) == pytest.approx(missing(matrix.indices, 250), abs=0.12)


def test_an_order_of_communities_needs_a_smaller_cache():
    mixed = np.random.default_rng(0).permutation(600)
    matrix = sparse.block_diag([np.ones((30, 30))] * 20, format="csr")[mixed][:, mixed]
    matrix = sparse.csr_array(matrix)
    properties = properties_of(matrix.shape, matrix.indptr, matrix.indices)
    ordered = with_row_order(properties, matrix.indptr, matrix.indices, np.argsort(mixed // 30))
    assert ordered.ordered_reuse.misses(40) < 0.1 < 0.8 < ordered.reuse.misses(40)


@pytest.mark.parametrize("shape", [(0, 0), (3, 3)])
def test_matrices_without_elements_use_no_columns(shape):
    empty = sparse.csr_array(shape)
    order = np.arange(shape[0])
    properties = with_row_order(
        properties_of(shape, empty.indptr, empty.indices), empty.indptr, empty.indices, order
    )
    assert isinstance(properties.ordered_reuse, ColumnReuse)
