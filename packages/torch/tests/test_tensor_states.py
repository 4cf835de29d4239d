"""States of tensors: patterns and what layers keep are made again when contents change."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
import torch

import gossamer_torch as gt
from gossamer_torch.kept_results import ResultKey
from gossamer_torch.nn import GATConv, GCNConv, RGCNConv, SAGEConv, SparseConv3d
from gossamer_torch.tensor_states import has_state, state_of


class Result:
    """The result for a tensor."""


SUM, PRODUCT = ResultKey[Result]("a sum"), ResultKey[Result]("a product")
EDGES = torch.tensor([[0, 1, 2], [1, 2, 2]])


def test_a_view_of_the_same_memory_has_the_state_and_one_with_other_strides_does_not():
    numbers = torch.arange(6)
    state = state_of(numbers[:3])
    assert has_state(numbers[:3], state)
    assert not has_state(numbers[::2], state)
    assert not has_state(numbers[:2], state)


def test_writes_in_inference_mode_are_seen(arrays):
    with torch.inference_mode():
        crow, col = (tensor.clone() for tensor in arrays)
        A, X = gt.SparseMatrix(crow, col, shape=(3, 4)), torch.randn(4, 2)
        gt.spmm(A, X)
        col[0] = 3
        torch.testing.assert_close(gt.spmm(A, X), A.to_dense() @ X)
        layer, x, edges = GCNConv(3, 4), torch.randn(3, 3), EDGES.clone()
        layer(x, edges)
        edges[0, 0] = 2
        torch.testing.assert_close(layer(x, edges), layer(x, edges.clone()))


def test_edges_whose_data_is_replaced_are_read_again():
    layer, x, edges = GCNConv(3, 4), torch.randn(3, 3), EDGES.clone()
    layer(x, edges)
    edges.data = torch.tensor([[1, 1, 2], [0, 2, 2]])
    torch.testing.assert_close(layer(x, edges), layer(x, edges.clone()))


def test_columns_in_the_memory_of_those_that_moved_are_read():
    """As after a matrix was sent to a process of a `DataLoader`, which moves its tensors."""
    length = 4000
    crow, x = torch.arange(length + 1), torch.randn(length)
    moved = []
    for _ in range(20):
        col = torch.randperm(length)
        gt.spmv(gt.SparseMatrix(crow, col, shape=(length, length)), x)
        moved.append(col.share_memory_())
        other = torch.randperm(length)
        product = gt.spmv(gt.SparseMatrix(crow, other, shape=(length, length)), x)
        assert torch.equal(product, x[other])


def test_a_result_is_made_once_for_its_tensors_and_ends_with_the_first_of_them():
    tensor, other = torch.ones(1), torch.ones(1)

    result = ref(SUM.get([tensor, other], Result))
    assert SUM.get([tensor, other], Result) is result()
    assert PRODUCT.get([tensor, other], Result) is not result()
    assert SUM.get([tensor, other], Result, options=(2,)) is not result()
    del other
    gc.collect()
    assert result() is None


@pytest.mark.parametrize("first", [True, False])
def test_a_tensor_does_not_keep_the_options_of_a_result_that_ended_with_another(first):
    tensor, other, option = torch.ones(1), torch.ones(1), Result()
    SUM.get([tensor, other] if first else [other, tensor], Result, options=(option,))
    kept = ref(option)
    del other, option
    gc.collect()
    assert kept() is None


def test_results_of_earlier_places_of_a_tensor_are_dropped():
    tensor = torch.ones(1)
    result = ref(SUM.get([tensor], Result))
    tensor.data = torch.zeros(1)
    SUM.get([tensor], Result)
    gc.collect()
    assert result() is None


def test_layers_train_after_a_call_in_inference_mode():
    x, types = torch.randn(3, 3, requires_grad=True), torch.tensor([0, 1, 1])
    voxels = torch.tensor([[0, 0, 0], [0, 0, 1], [5, 5, 5]])
    for layer, graph in [
        (GCNConv(3, 4), (EDGES.clone(),)),
        (SAGEConv(3, 4), (EDGES.clone(),)),
        (GATConv(3, 4), (EDGES.clone(),)),
        (RGCNConv(3, 4, 2), (EDGES.clone(), types)),
        (SparseConv3d(3, 4), (voxels,)),
    ]:
        with torch.inference_mode():
            layer(x, *graph)
        layer(x, *graph).sum().backward()
