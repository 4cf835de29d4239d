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
    assert pattern.direct.structure.arrays["indices"].dtype == "int32"
    assert pattern.transposed is pattern.transposed
    values = torch.randn(5)
    transposed = pattern.transposed.matrix(values).toarray()
    assert (transposed == pattern.direct.matrix(values).toarray().T).all()


def test_tensors_of_inference_mode_have_no_count_of_writes(arrays):
    with torch.inference_mode():
        crow, col = (tensor.clone() for tensor in arrays)
    assert kept_pattern(crow, col, 4).direct.structure.nnz == 5


@pytest.mark.parametrize("transposed", [False, True])
def test_values_that_stay_the_same_have_one_matrix(arrays, transposed):
    pattern, values = kept_pattern(*arrays, 4), torch.randn(5)
    values[0] = torch.nan

    def matrix(values):
        return pattern.orientation(transposed=transposed).matrix(values)

    def expected():
        dense = SparseMatrix(*arrays, values, shape=(3, 4)).to_dense().numpy()
        return dense.T if transposed else dense

    matrix(values)
    kept = matrix(values)
    assert matrix(values) is kept
    assert matrix(values.clone()) is kept
    # torch does not count this write.
    values.numpy()[0] = 3
    assert matrix(values) is not kept
    assert (matrix(values).toarray() == expected()).all()
    values.mul_(2)
    assert (matrix(values).toarray() == expected()).all()


def test_matrices_of_values_that_change_are_not_kept(arrays):
    pattern, values = kept_pattern(*arrays, 4), torch.ones(5)
    for other in (values.half(), values.bfloat16()):
        matrices = [pattern.direct.matrix(other) for _ in range(3)]
        assert matrices[1] is matrices[2]
    bits = values.half().view(torch.bfloat16)
    assert pattern.direct.matrix(bits).value_dtype == "bfloat16"
    trained = values.clone().requires_grad_()
    with torch.inference_mode():
        inferred = values.clone()
    for tensor in (trained, inferred):
        matrices = [pattern.direct.matrix(tensor) for _ in range(3)]
        assert matrices[1] is not matrices[2]
