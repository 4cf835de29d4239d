"""Patterns are made once, and end with their tensors."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
import torch

from gossamer_torch import SparseMatrix
from gossamer_torch.patterns import kept_pattern


def test_a_pattern_is_made_once_for_its_tensors(arrays):
    pattern = kept_pattern(*arrays, 4)
    assert kept_pattern(*arrays, 4) is pattern
    views = [tensor.view(-1) for tensor in arrays]
    assert kept_pattern(*views, 4) is pattern
    assert kept_pattern(*arrays, 5) is not pattern


@pytest.mark.parametrize("position", [0, 1])
def test_a_pattern_ends_with_the_first_of_its_tensors(arrays, position):
    tensors = [tensor.clone() for tensor in arrays]
    pattern = ref(kept_pattern(*tensors, 4))
    del tensors[position]
    gc.collect()
    assert pattern() is None


def test_columns_in_the_memory_of_earlier_ones_are_read():
    crow, features = torch.tensor([0, 1, 2]), torch.tensor([[1.0], [2.0]])
    for columns in ([0, 1], [1, 0]) * 20:
        product = SparseMatrix(crow, torch.tensor(columns), shape=(2, 2)) @ features
        assert product.tolist() == features[columns].tolist()


def test_tensors_at_one_address_with_other_strides_have_other_patterns():
    crow, col = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])
    pattern = kept_pattern(crow, col[:2], 4)
    assert kept_pattern(crow, col[::2], 4) is not pattern


def test_indices_are_narrowed_and_the_transposed_pattern_is_kept(arrays):
    pattern = kept_pattern(*arrays, 4)
    assert pattern.structure.arrays["indices"].dtype == "int32"
    assert pattern.transposed is pattern.transposed
    values = torch.randn(5)
    transposed = pattern.matrix(values, transposed=True).toarray()
    assert (transposed == pattern.matrix(values, transposed=False).toarray().T).all()


def test_tensors_of_inference_mode_have_no_count_of_writes(arrays):
    with torch.inference_mode():
        crow, col = (tensor.clone() for tensor in arrays)
    assert kept_pattern(crow, col, 4).structure.nnz == 5
