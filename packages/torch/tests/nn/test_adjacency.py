"""Structures of graphs in compiled graphs: operators whose results share what is kept for the edges."""

from __future__ import annotations

import pytest
import torch

from gossamer_torch.nn.adjacency import row_means
from gossamer_torch.nn.rgcn_conv import relation_pairs
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.sparse_matrix import SparseMatrix

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
RELATIONS = torch.tensor([0, 1, 1, 0])
operators = torch.ops.gossamer


def test_results_of_one_edge_index_have_one_pattern():
    crow, col, _ = operators.ordered_edges(EDGES, 3, 3)
    other_crow, other_col, _ = operators.ordered_edges(EDGES, 3, 3)
    assert crow.data_ptr() != other_crow.data_ptr()
    assert kept_pattern(crow, col, 3) is kept_pattern(other_crow, other_col, 3)
    looped, other = (
        operators.with_self_loops(*arrays, 3, False)
        for arrays in [(crow, col), (other_crow, other_col)]
    )
    assert kept_pattern(*looped[:2], 3) is kept_pattern(*other[:2], 3)


def test_a_result_that_was_overwritten_has_a_pattern_of_its_own():
    crow, col, _ = operators.ordered_edges(EDGES, 3, 3)
    kept = kept_pattern(crow, col, 3)
    col[0] = 2
    assert kept_pattern(crow, col, 3).direct.structure.arrays["indices"][0] == 2
    assert kept.direct.structure.arrays["indices"][0] == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ordered_edges", (EDGES, 3, 3)),
        ("with_self_loops", (torch.tensor([0, 1, 1]), torch.tensor([1]), 2, False)),
        ("relation_pairs", (EDGES, RELATIONS, 3, 3, 2)),
        ("index_tensor", (EDGES.t(),)),
    ],
)
def test_torch_finds_nothing_wrong_with_the_operators(name, arguments):
    operator = getattr(operators, name).default
    torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))


def test_pairs_of_one_graph_are_made_once():
    assert relation_pairs(EDGES, RELATIONS, 3, 2) is relation_pairs(EDGES, RELATIONS, 3, 2)


def test_the_matrix_of_means_and_its_transposed_are_made_once():
    A = SparseMatrix(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 2, 1]), shape=(3, 3))
    first, second = (row_means(A, torch.float32) for _ in range(2))
    pattern = kept_pattern(A.crow, A.col, 3)
    for transposed in (False, True):
        operand = pattern.operand(first.values, transposed=transposed)
        assert operand is pattern.operand(second.values, transposed=transposed)
        dense = first.to_dense().T if transposed else first.to_dense()
        torch.testing.assert_close(torch.from_numpy(operand.todense()), dense)


def test_means_of_equal_offsets_belong_to_their_columns():
    crow = torch.tensor([0, 2, 2, 3])
    for col in (torch.tensor([0, 2, 1]), torch.tensor([1, 2, 0])):
        A = SparseMatrix(crow, col, shape=(3, 3))
        X = torch.eye(3)
        torch.testing.assert_close(row_means(A, X.dtype) @ X, row_means(A, X.dtype).to_dense())
