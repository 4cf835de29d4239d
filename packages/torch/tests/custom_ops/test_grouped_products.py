"""Products in groups: results over several panels for odd numbers of columns, and large matrices."""

from __future__ import annotations

import pytest
import torch

from gossamer_torch import gather_multiply_scatter
from gossamer_torch.custom_ops.grouped_products import ROWS_OF_PANEL, has_small_matrices


@pytest.mark.parametrize(("features", "outputs"), [(1, 1), (2, 2), (5, 19), (33, 40)])
def test_products_over_several_panels_are_those_of_float64(features, outputs):
    torch.manual_seed(0)
    rows, segments, products = 2 * ROWS_OF_PANEL + 3, 4, 3000
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


def test_large_matrices_and_a_single_one_are_multiplied_at_once():
    assert has_small_matrices(torch.empty(2, 64, 64))
    assert not has_small_matrices(torch.empty(2, 512, 512))
    assert not has_small_matrices(torch.empty(1, 64, 64))
