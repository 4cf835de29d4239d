"""Products in groups: results over several panels for odd numbers of columns, and large matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gossamer as gs
from gossamer.internal_api import machine_for
from gossamer_backend.call.threads import reset_num_threads
from gossamer_torch import gather_multiply_scatter
from gossamer_torch.custom_ops.segments.grouped_outer_products import (
    CHUNK_PRODUCTS,
    outer_products_in_groups,
)
from gossamer_torch.custom_ops.segments.grouped_sums import (
    MAX_PANEL_ROWS,
    MIN_PANEL_ROWS,
    has_small_matrices,
    products_in_groups,
    rows_of_panel,
    sums_of_groups,
)
from gossamer_torch.custom_ops.segments.segment_sums import segment_products


@pytest.mark.parametrize(("features", "outputs"), [(1, 1), (2, 2), (5, 19), (33, 40)])
def test_products_over_several_panels_are_those_of_float64(features, outputs):
    torch.manual_seed(0)
    rows, segments, products = 2 * MAX_PANEL_ROWS + 3, 4, 3000
    numbers = torch.tensor([0, 0, 2, 3]).repeat_interleave(products // segments)
    sources, targets = torch.randint(50, (products,)), torch.randint(rows, (products,))
    x, weights = torch.randn(50, features), torch.randn(segments, features, outputs)
    offsets = torch.searchsorted(numbers, torch.arange(segments + 1))
    result = gather_multiply_scatter(x, weights, sources, targets, offsets, rows)
    right = torch.zeros(rows, outputs, dtype=torch.double)
    terms = torch.einsum("ec,ecd->ed", x[sources].double(), weights[numbers].double())
    torch.testing.assert_close(
        result.double(), right.index_add(0, targets, terms), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("weight", [torch.inf, -torch.inf])
@pytest.mark.parametrize("last", [1, 2, 7])
def test_weights_that_are_not_finite_reach_the_products_of_their_segment_only(weight, last):
    """The last group of a segment has places without a product, which are not added."""
    counts = [3, last]
    numbers = torch.arange(2).repeat_interleave(torch.tensor(counts))
    sources = torch.arange(sum(counts))
    x, weights = torch.ones(sum(counts), 3), torch.ones(2, 3, 4)
    weights[1, 2, 1] = weight
    offsets = torch.tensor([0, *counts]).cumsum(0)
    result = gather_multiply_scatter(x, weights, sources, sources, offsets, sum(counts))
    expected = torch.einsum("ec,ecd->ed", x, weights[numbers])
    torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.fixture
def set_threads():
    yield gs.set_num_threads
    reset_num_threads()


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_each_thread_has_a_panel_unless_panels_would_be_too_small(set_threads, threads):
    set_threads(threads)
    assert rows_of_panel(16 * MIN_PANEL_ROWS) == 16 * MIN_PANEL_ROWS // threads
    assert rows_of_panel(threads * MIN_PANEL_ROWS - 1) <= MIN_PANEL_ROWS
    assert rows_of_panel(threads * MAX_PANEL_ROWS + 1) == MAX_PANEL_ROWS
    assert rows_of_panel(1) == rows_of_panel(0) == 1


def test_groups_are_made_again_for_another_number_of_threads(monkeypatch, set_threads):
    panels = []

    def record_panel(x, weights, groups, rows):
        panels.append(groups.panel)
        return sums_of_groups(x, weights, groups, rows)

    monkeypatch.setattr(
        "gossamer_torch.custom_ops.segments.segment_sums.sums_of_groups", record_panel
    )
    rows = 8 * MIN_PANEL_ROWS
    numbers, offsets = torch.arange(rows), torch.tensor([0, rows // 2, rows])
    x, weights = torch.randn(rows, 3), torch.randn(2, 3, 4)
    results = []
    for threads in (2, 8, 2):
        set_threads(threads)
        results.append(gather_multiply_scatter(x, weights, numbers, numbers, offsets, rows))
    assert panels == [rows // 2, rows // 8, rows // 2]
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("bits", [256, 512])
def test_the_tile_of_a_group_fills_the_accumulators_of_the_machine(monkeypatch, bits):
    machine = machine_for(f"generic-cpu:vector_bits={bits}")
    monkeypatch.setattr(
        "gossamer_torch.custom_ops.segments.grouped_sums.machine_for", lambda target: machine
    )
    numbers = np.zeros(3, np.int64)
    groups = products_in_groups(numbers, numbers, numbers, count=1, rows=1, columns=1, panel=1)
    assert groups.rows.size == machine.accumulators // 2


def test_large_matrices_and_a_single_one_are_multiplied_at_once():
    assert has_small_matrices((2, 64, 64), torch.float32)
    assert not has_small_matrices((2, 512, 512), torch.float32)
    assert not has_small_matrices((1, 64, 64), torch.float32)


SEGMENTS, ROWS = 5, 50
NUMBERS = torch.tensor([0, 2, 3, 4]).repeat_interleave(torch.tensor([5000, 1, 33, 700]))
PRODUCTS = len(NUMBERS)


@pytest.mark.parametrize(("features", "outputs"), [(2, 2), (5, 19), (33, 40)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("index", [torch.int32, torch.int64, None])
def test_gradients_of_segments_are_those_of_float64(features, outputs, dtype, index):
    """Segments of several groups, with no product, and with fewer products than a group."""
    rows = PRODUCTS if index is None else ROWS
    x, y = (torch.randn(rows, width, dtype=dtype) for width in (features, outputs))
    sources, targets = (
        None if index is None else torch.randint(ROWS, (PRODUCTS,), dtype=index) for _ in "xy"
    )
    offsets = torch.searchsorted(NUMBERS, torch.arange(SEGMENTS + 1))
    result = segment_products(x, y, sources, targets, offsets)
    left, right = (
        factor.double() if places is None else factor[places.long()].double()
        for factor, places in ((x, sources), (y, targets))
    )
    expected = torch.stack(
        [left[number == NUMBERS].T @ right[number == NUMBERS] for number in range(SEGMENTS)]
    )
    tolerance = 1e-3 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", [3, 4, 5])
@pytest.mark.parametrize(
    ("x_value", "y_value"), [(torch.inf, 1.0), (1.0, torch.inf), (1.0, torch.nan)]
)
def test_rows_that_are_not_finite_are_those_of_their_segment_only(row, x_value, y_value):
    offsets, in_order = torch.tensor([0, 3, 6]), torch.arange(6)
    x, y = torch.ones(6, 3), torch.ones(6, 4)
    x[row, 1], y[row, 2] = x_value, y_value
    result = segment_products(x, y, in_order, in_order, offsets)
    expected = torch.stack([x[:3].T @ y[:3], x[3:].T @ y[3:]])
    torch.testing.assert_close(result, expected, equal_nan=True)


def test_long_segments_have_several_chunks_and_no_group_is_filled_up():
    bounds = np.array([0, CHUNK_PRODUCTS + 1, CHUNK_PRODUCTS + 1, CHUNK_PRODUCTS + 2])
    numbers = np.arange(bounds[-1])
    groups = outer_products_in_groups(bounds, numbers, numbers, group_rows=CHUNK_PRODUCTS // 2)
    assert groups.segments.tolist() == [0, 0, 2]
    assert groups.chunk_indptr.tolist() == [0, 2, 3, 4]
    lengths = [CHUNK_PRODUCTS // 2, CHUNK_PRODUCTS // 2, 1, 1]
    assert np.diff(groups.indptr).tolist() == lengths
    assert groups.rows.tolist() == groups.columns.tolist() == numbers.tolist()


@pytest.mark.parametrize("counts", [[1] * 9, [3, 1, 2], [1, 0, 1]])
def test_segments_of_few_products_are_those_of_float64(counts):
    x, y = torch.randn(sum(counts), 3), torch.randn(sum(counts), 5)
    offsets = torch.tensor([0, *counts]).cumsum(0)
    parts = zip(x.double().split(counts), y.double().split(counts), strict=True)
    expected = torch.stack([left.T @ right for left, right in parts])
    result = segment_products(x, y, None, None, offsets)
    torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)


def test_sums_of_groups_are_added_in_several_steps(monkeypatch):
    x, y = torch.randn(PRODUCTS, 2), torch.randn(PRODUCTS, 3)
    offsets = torch.searchsorted(NUMBERS, torch.arange(SEGMENTS + 1))
    expected = segment_products(x, y, None, None, offsets)
    monkeypatch.setattr(
        "gossamer_torch.custom_ops.segments.grouped_outer_products._SUM_BYTES", 24 * 7
    )
    torch.testing.assert_close(segment_products(x, y, None, None, offsets), expected)
