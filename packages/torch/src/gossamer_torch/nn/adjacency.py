"""Adjacency matrices of graphs for layers: row i has the nodes from which node i receives.

A graph is the edge index of PyG or a matrix. What layers derive from it is made once: it is kept with the
tensor of edges, or of offsets, as long as nobody writes to it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import INDEX_TENSOR_DTYPES, require_dense, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, from_edge_index, to_sparse_matrix
from gossamer_torch.custom_ops.registration import torch_operator
from gossamer_torch.kept_results import copy_with_results, kept_contents, memoize_with
from gossamer_torch.operators.spmv import spmv
from gossamer_torch.sparse_matrix import SparseMatrix, matrix_of_checked

Graph: TypeAlias = SparseOperand
"""A dense tensor (2 by E) is an edge index: edges go from its row 0 to its row 1. Any sparse matrix is the
adjacency matrix: row i has the nodes from which node i receives."""


class OrderedEdges(NamedTuple):
    """The matrix of an edge index, with ones, and for each of its elements the number of the edge."""

    matrix: SparseMatrix
    order: torch.Tensor


def adjacency_of(
    graph: Graph, edge_weight: torch.Tensor | None, shape: tuple[int, int], dtype: torch.dtype
) -> SparseMatrix:
    """Return the adjacency matrix of a graph, whose rows are targets and columns are sources, with the
    weights of its edges, in their order (by default 1, in the dtype).

    Raises `ArgumentError` (`operand.shape`: the matrix has another shape, or there are weights besides a
    matrix; `operand.range`: an index is out of range).

    >>> edges = torch.tensor([[0, 0], [1, 2]])
    >>> adjacency_of(edges, torch.tensor([5.0, 7.0]), (3, 3), torch.float32).to_dense()
    tensor([[0., 0., 0.],
            [5., 0., 0.],
            [7., 0., 0.]])
    """
    if isinstance(graph, torch.Tensor) and graph.layout == torch.strided:
        matrix, order = ordered_edges(graph, shape)
        if edge_weight is None:
            return matrix if matrix.dtype == dtype else matrix.with_values(matrix.values.to(dtype))
        return matrix.with_values(edge_weight.index_select(0, order))
    matrix = to_sparse_matrix(graph)
    if edge_weight is not None:
        raise ArgumentError(
            "operand.shape",
            "An adjacency matrix has weights of its own; expected edge_weight=None.",
            hint="Pass an edge index with edge_weight=, or matrix.with_values(edge_weight).",
        )
    if matrix.shape != shape:
        raise ArgumentError(
            "operand.shape",
            f"The adjacency matrix has the shape {matrix.shape}; expected {shape}.",
        )
    return matrix


def ordered_edges(edge_index: torch.Tensor, shape: tuple[int, int]) -> OrderedEdges:
    """Return the matrix of an edge index, made once for the tensor."""
    require_dense("edge_index", edge_index, dtypes=INDEX_TENSOR_DTYPES)
    require_tensor_shape("edge_index", edge_index, (2, None))
    if torch.compiler.is_compiling():
        return _edges_of_arrays(*_arrays_of_edges(edge_index, *shape), shape)
    return _kept_edges(edge_index, shape)


def _kept_edges(edge_index: torch.Tensor, shape: tuple[int, int]) -> OrderedEdges:
    def make() -> OrderedEdges:
        # Numbers of edges are exact in float64, and are sorted like values.
        numbers = torch.arange(edge_index.shape[1], dtype=torch.float64)
        matrix = from_edge_index(edge_index.flip(0), numbers, shape=shape)
        order = matrix.values.long()
        ones = torch.ones(len(order))
        return OrderedEdges(matrix.with_values(ones), order)

    return memoize_with([edge_index], ("edges", shape), make)


_Arrays: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""The offsets and the columns of the matrix of ordered edges, and the numbers of the edges."""


def _new_arrays_of_edges(edge_index: torch.Tensor, rows: int, columns: int) -> _Arrays:
    edges = edge_index.shape[1]
    col, order = edge_index.new_empty(edges), edge_index.new_empty(edges, dtype=torch.int64)
    return edge_index.new_empty(rows + 1), col, order


@torch_operator("ordered_edges", new_result=_new_arrays_of_edges)
def _arrays_of_edges(edge_index: torch.Tensor, rows: int, columns: int) -> _Arrays:
    """Return the arrays of the ordered edges, for compiled graphs."""
    return _copied_arrays(_kept_edges(kept_contents(edge_index), (rows, columns)))


def _copied_arrays(edges: OrderedEdges) -> _Arrays:
    crow, col, order = map(copy_with_results, (edges.matrix.crow, edges.matrix.col, edges.order))
    return crow, col, order


def _edges_of_arrays(
    crow: torch.Tensor, col: torch.Tensor, order: torch.Tensor, shape: tuple[int, int]
) -> OrderedEdges:
    return OrderedEdges(matrix_of_checked(crow, col, torch.ones(col.shape[0]), shape), order)


def with_self_loops(matrix: SparseMatrix) -> SparseMatrix:
    """Return a square matrix with an element of 1 on the diagonal where it has none.

    >>> with_self_loops(SparseMatrix(torch.tensor([0, 1, 1]), torch.tensor([1]), shape=(2, 2))).to_dense()
    tensor([[1., 1.],
            [0., 1.]])
    """
    if torch.compiler.is_compiling():
        looped, order = _edges_of_arrays(*_arrays_of_loops(matrix.crow, matrix.col), matrix.shape)
    else:
        looped, order = _kept_loops(matrix)
    # The element after the last one is that of each new loop.
    values = torch.cat([matrix.values, matrix.values.new_ones(1)])
    return looped.with_values(values.index_select(0, order))


def _kept_loops(matrix: SparseMatrix) -> OrderedEdges:
    def make() -> OrderedEdges:
        rows, columns = matrix.rows().long(), matrix.col.long()
        has_loop = torch.zeros(matrix.shape[0], dtype=torch.bool)
        has_loop[rows[rows == columns]] = True
        missing = torch.nonzero(~has_loop)[:, 0]
        edges = torch.stack([torch.cat([columns, missing]), torch.cat([rows, missing])])
        looped, order = ordered_edges(edges, matrix.shape)
        return OrderedEdges(looped, order.clamp(max=matrix.nnz))

    return memoize_with([matrix.crow, matrix.col], "loops", make)


def _new_arrays_of_loops(crow: torch.Tensor, col: torch.Tensor) -> _Arrays:
    elements = torch.library.get_ctx().new_dynamic_size()
    arrays = (crow.shape[0], elements, elements)
    first, second, third = (crow.new_empty(length, dtype=torch.int64) for length in arrays)
    return first, second, third


@torch_operator("with_self_loops", new_result=_new_arrays_of_loops)
def _arrays_of_loops(crow: torch.Tensor, col: torch.Tensor) -> _Arrays:
    """Return the arrays of a square matrix with self loops, for compiled graphs."""
    nodes = crow.shape[0] - 1
    return _copied_arrays(_kept_loops(SparseMatrix(crow, col, shape=(nodes, nodes))))


def symmetrically_normalized(matrix: SparseMatrix) -> SparseMatrix:
    """Return D^-1/2 A D^-1/2, where D has the sums of the rows of A; rows without elements stay empty.

    >>> looped = SparseMatrix(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]), shape=(2, 2))
    >>> symmetrically_normalized(looped).values
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    degrees = spmv(matrix, matrix.values.new_ones(matrix.shape[1]))
    roots = torch.where(degrees > 0, degrees, 1).rsqrt()
    roots = torch.where(degrees > 0, roots, 0)
    left = roots.index_select(0, matrix.rows())
    return matrix.with_values(left * matrix.values * roots.index_select(0, matrix.col))


def row_means(matrix: SparseMatrix, dtype: torch.dtype) -> SparseMatrix:
    """Return the matrix with the same pattern that takes the mean over each row, made once.

    >>> matrix = SparseMatrix(torch.tensor([0, 2]), torch.tensor([0, 1]), shape=(1, 2))
    >>> row_means(matrix, torch.float32).values
    tensor([0.5000, 0.5000])
    """

    def make() -> torch.Tensor:
        shares = 1 / matrix.crow.diff().to(dtype)
        return shares.index_select(0, matrix.rows())

    if torch.compiler.is_compiling():
        return matrix.with_values(make())
    return matrix.with_values(memoize_with([matrix.crow], ("means", dtype), make))
