"""Sizes of tiles of columns, of windows of rows, and of partial sums."""

from __future__ import annotations

import pytest

from gossamer_heuristics.column_tiles import MAX_PANEL, MIN_PANEL, PACKED_BYTES, column_tiling
from gossamer_heuristics.row_lengths import has_partial_sums, window_rows
from gossamer_ir.interchange.records import Stats
from gossamer_machine.machine import Machine


@pytest.mark.parametrize(
    ("vectors", "vector_bytes", "tiles", "per_tile", "is_packed"),
    [
        (8, PACKED_BYTES // 8, 1, 8, True),
        (9, PACKED_BYTES // 8, 2, 5, True),
        (8, PACKED_BYTES // 4, 2, 4, True),
        (8, PACKED_BYTES, 8, 1, True),
        (8, PACKED_BYTES + 1, 1, 8, False),
        (1, 1, 1, 1, True),
    ],
)
def test_tiles_of_features_have_as_many_vectors_as_fit(
    vectors, vector_bytes, tiles, per_tile, is_packed
):
    tiling = column_tiling(vectors, vector_bytes=vector_bytes, rows=None)
    assert (tiling.feature_tiles, tiling.vectors, tiling.is_packed) == (tiles, per_tile, is_packed)


@pytest.mark.parametrize(
    ("rows", "panel"),
    [(None, MAX_PANEL), (0, MIN_PANEL), (127, MIN_PANEL), (200, 100), (4096, MAX_PANEL)],
)
def test_two_threads_have_a_panel_each(rows, panel):
    assert column_tiling(1, vector_bytes=64, rows=rows).panel == panel


@pytest.mark.parametrize(("feature_tiles", "panel"), [(1, 150), (3, 150), (4, 300), (8, 300)])
def test_threads_share_the_feature_tiles_of_one_panel_if_there_are_enough(feature_tiles, panel):
    tiling = column_tiling(feature_tiles, vector_bytes=PACKED_BYTES, rows=300)
    assert (tiling.feature_tiles, tiling.panel) == (feature_tiles, panel)


@pytest.mark.parametrize(
    ("features", "mean", "is_packed", "pays"),
    [
        (16, 16, False, True),
        (16, 15, False, False),
        (32, 16, False, False),
        (32, 16, True, True),
        (48, 16, True, False),
        (24, 16, True, False),
        (0, 16, True, False),
    ],
)
def test_long_rows_of_few_whole_vectors_have_partial_sums(features, mean, is_packed, pays):
    matrix = Stats(rows=10, columns=10, nnz=10 * mean, longest_row=mean, empty_rows=0)
    has_sums = has_partial_sums(features, "float32", Machine(), matrix, is_packed=is_packed)
    assert has_sums is pays


@pytest.mark.parametrize(
    ("rows", "window"),
    [(0, 256), (8191, 256), (8192, 512), (65_535, 2048), (65_536, 4096), (10**9, 4096)],
)
def test_windows_are_a_sixteenth_of_the_rows_within_limits(rows, window):
    assert window_rows(rows) == window
