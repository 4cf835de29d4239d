"""Patterns are made once, and end with their tensors."""

from __future__ import annotations

import gc
from weakref import ref

import torch

from gossamer_torch.patterns import kept_pattern


def test_a_pattern_is_made_once_for_its_tensors(arrays):
    pattern = kept_pattern(*arrays, 4)
    assert kept_pattern(*arrays, 4) is pattern
    views = [tensor.view(-1) for tensor in arrays]
    assert kept_pattern(*views, 4) is pattern
    assert kept_pattern(*arrays, 5) is not pattern


def test_a_pattern_ends_with_its_tensors(arrays):
    crow, col = (tensor.clone() for tensor in arrays)
    pattern = ref(kept_pattern(crow, col, 4))
    del crow
    gc.collect()
    assert pattern() is None


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
