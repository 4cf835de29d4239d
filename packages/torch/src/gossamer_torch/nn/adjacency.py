"""Adjacency matrices of graphs for layers: row i has the nodes from which node i receives.

A graph is the edge index of PyG or a matrix. Layers derive their matrices from it once: these are kept
with the tensor of edges, or of offsets, until that is written to.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypeGuard

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import INDEX_TENSOR_DTYPES, require_dense, require_tensor_shape
from gossamer_torch.conversion import SparseOperand, from_edge_index, to_sparse_matrix
from gossamer_torch.custom_ops.registration import torch_operator
from gossamer_torch.kept_results import ResultKey, copy_with_results, kept_contents
from gossamer_torch.operators.spmv import spmv
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.sparse_matrix import SparseMatrix, matrix_of_checked

Graph: TypeAlias = SparseOperand
"""A dense tensor (2 by E) is an edge index: edges go from its row 0 to its row 1. Any sparse matrix is the
adjacency matrix: row i has the nodes from which node i receives."""


def is_edge_index(graph: Graph) -> TypeGuard[torch.Tensor]:
    """Return whether a graph is an edge index, not a matrix.

    >>> is_edge_index(torch.tensor([[0], [1]]))
    True
    """
    return isinstance(graph, torch.Tensor) and graph.layout == torch.strided


class OrderedEdges(NamedTuple):
    """The matrix of an edge index, with ones, and for each of its elements the number of the edge."""

    matrix: SparseMatrix
    order: torch.Tensor


def adjacency_of(
    graph: Graph, edge_weight: torch.Tensor | None, shape: tuple[int, int], dtype: torch.dtype
) -> SparseMatrix:
    """Return the adjacency matrix of a graph, whose rows are targets and columns are sources, with the
    weights of its edges, in their order (by default 1, in the dtype), which may have dimensions in front.

    Raises `ArgumentError` (`operand.shape`: the matrix has another shape; `layer.options`: there are weights
    besides a matrix; `operand.range`: an index is out of range).

    >>> edges = torch.tensor([[0, 0], [1, 2]])
    >>> adjacency_of(edges, torch.tensor([5.0, 7.0]), (3, 3), torch.float32).to_dense()
    tensor([[0., 0., 0.],
            [5., 0., 0.],
            [7., 0., 0.]])
    """
    if is_edge_index(graph):
        matrix, order = ordered_edges(graph, shape)
        if edge_weight is None:
            return matrix if matrix.dtype == dtype else matrix.with_values(matrix.values.to(dtype))
        require_dense("edge_weight", edge_weight)
        batch = (None,) * (edge_weight.dim() - 1)
        require_tensor_shape("edge_weight", edge_weight, (*batch, graph.shape[1]))
        return matrix.with_values(edge_weight.index_select(-1, order))
    matrix = to_sparse_matrix(graph)
    if edge_weight is not None:
        raise ArgumentError(
            "layer.options",
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


_EDGES = ResultKey[OrderedEdges]("the edges in the order of a matrix")
_LOOPS = ResultKey[OrderedEdges]("the elements of a matrix with self loops")
_MEANS = ResultKey[torch.Tensor]("the values of a matrix that takes means")


def _kept_edges(edge_index: torch.Tensor, shape: tuple[int, int]) -> OrderedEdges:
    def make() -> OrderedEdges:
        # Numbers of edges are exact in float64, and are sorted like values.
        numbers = torch.arange(edge_index.shape[1], dtype=torch.float64, device=edge_index.device)
        matrix = from_edge_index(edge_index.flip(0), numbers, shape=shape)
        order = matrix.values.long()
        ones = torch.ones(len(order), device=order.device)
        return OrderedEdges(matrix.with_values(ones), order)

    return _EDGES.get([edge_index], make, options=(shape,))


_Arrays: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""The offsets and the columns of the matrix of ordered edges, and the numbers of the edges."""


def _new_arrays_of_edges(edge_index: torch.Tensor, rows: int, columns: int) -> _Arrays:
    edges = edge_index.shape[1]
    col, order = edge_index.new_empty(edges), edge_index.new_empty(edges, dtype=torch.int64)
    return edge_index.new_empty(rows + 1), col, order


@torch_operator("ordered_edges", new_result=_new_arrays_of_edges, runs_anywhere=True)
def _arrays_of_edges(edge_index: torch.Tensor, rows: int, columns: int) -> _Arrays:
    """Return the arrays of the ordered edges, for compiled graphs."""
    return _copied_arrays(_kept_edges(kept_contents(edge_index), (rows, columns)))


def _copied_arrays(edges: OrderedEdges) -> _Arrays:
    crow, col, order = map(copy_with_results, (edges.matrix.crow, edges.matrix.col, edges.order))
    return crow, col, order


def _edges_of_arrays(
    crow: torch.Tensor, col: torch.Tensor, order: torch.Tensor, shape: tuple[int, int]
) -> OrderedEdges:
    ones = torch.ones(col.shape[0], device=col.device)
    return OrderedEdges(matrix_of_checked(crow, col, ones, shape), order)


def with_self_loops(
    matrix: SparseMatrix, weights: torch.Tensor, *, replace: bool = False
) -> SparseMatrix:
    """Return a matrix with an element on the diagonal where it has none, or instead of those that it has.
    `weights` has that of each node in its last dimension.

    >>> matrix = SparseMatrix(torch.tensor([0, 1, 1]), torch.tensor([1]), shape=(2, 2))
    >>> with_self_loops(matrix, torch.tensor([3.0, 4.0])).to_dense()
    tensor([[3., 1.],
            [0., 4.]])
    """
    if torch.compiler.is_compiling():
        arrays = _arrays_of_loops(matrix.crow, matrix.col, matrix.shape[1], replace=replace)
        looped, order = _edges_of_arrays(*arrays, matrix.shape)
    else:
        looped, order = _kept_loops(matrix, replace=replace)
    values = torch.cat([matrix.values, weights], dim=-1)
    return looped.with_values(values.index_select(-1, order))


def _kept_loops(matrix: SparseMatrix, *, replace: bool) -> OrderedEdges:
    """Return the matrix with loops; for a new loop, the number is that of its node after all elements."""

    def make() -> OrderedEdges:
        rows, columns = matrix.row_indices().long(), matrix.col.long()
        is_loop = rows == columns
        has_loop = torch.zeros(min(matrix.shape), dtype=torch.bool, device=rows.device)
        if not replace:
            has_loop[rows[is_loop]] = True
        new = torch.nonzero(~has_loop)[:, 0]
        kept = torch.nonzero(~is_loop | (not replace))[:, 0]
        edges = torch.stack([torch.cat([columns[kept], new]), torch.cat([rows[kept], new])])
        looped, order = ordered_edges(edges, matrix.shape)
        return OrderedEdges(looped, torch.cat([kept, new + matrix.nnz]).index_select(0, order))

    return _LOOPS.get([matrix.crow, matrix.col], make, options=(matrix.shape[1], replace))


def _new_arrays_of_loops(
    crow: torch.Tensor, col: torch.Tensor, columns: int, *, replace: bool
) -> _Arrays:
    elements = torch.library.get_ctx().new_dynamic_size()
    arrays = (crow.shape[0], elements, elements)
    first, second, third = (crow.new_empty(length, dtype=torch.int64) for length in arrays)
    return first, second, third


@torch_operator("with_self_loops", new_result=_new_arrays_of_loops, runs_anywhere=True)
def _arrays_of_loops(
    crow: torch.Tensor, col: torch.Tensor, columns: int, *, replace: bool
) -> _Arrays:
    """Return the arrays of a matrix with self loops, for compiled graphs."""
    matrix = SparseMatrix(crow, col, shape=(crow.shape[0] - 1, columns))
    return _copied_arrays(_kept_loops(matrix, replace=replace))


def symmetrically_normalized(matrix: SparseMatrix) -> SparseMatrix:
    """Return D^-1/2 A D^-1/2, where D has the sums of the rows of A; rows without elements stay empty.

    >>> looped = SparseMatrix(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]), shape=(2, 2))
    >>> symmetrically_normalized(looped).values
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    degrees = spmv(matrix, matrix.values.new_ones(matrix.shape[1]))
    roots = torch.where(degrees > 0, degrees, 1).rsqrt()
    roots = torch.where(degrees > 0, roots, 0)
    left = roots.index_select(0, matrix.row_indices())
    return matrix.with_values(left * matrix.values * roots.index_select(0, matrix.col))


def row_means(matrix: SparseMatrix, dtype: torch.dtype) -> SparseMatrix:
    """Return the matrix with the same pattern that takes the mean over each row. Its values are made once,
    and so is the transposed matrix with them, which gradients need.

    >>> matrix = SparseMatrix(torch.tensor([0, 2]), torch.tensor([0, 1]), shape=(1, 2))
    >>> row_means(matrix, torch.float32).values
    tensor([0.5000, 0.5000])
    """

    def make() -> torch.Tensor:
        shares = 1 / matrix.crow.diff().to(dtype)
        return shares.index_select(0, matrix.row_indices())

    if torch.compiler.is_compiling():
        return matrix.with_values(make())

    def make_own() -> torch.Tensor:
        return with_own_values(matrix.with_values(make())).values

    indices, options = [matrix.crow, matrix.col], (matrix.shape[1], dtype)
    return matrix.with_values(_MEANS.get(indices, make_own, options=options))


def with_own_values(matrix: SparseMatrix) -> SparseMatrix:
    """Return a matrix whose values no other code has, so that what is made of them stays right: they are kept
    with it, such as the transposed matrix.

    >>> with_own_values(SparseMatrix(torch.tensor([0, 1]), torch.tensor([0]), shape=(1, 1))).values
    tensor([1.])
    """
    if matrix.values.device.type == "cpu":
        pattern = kept_pattern(matrix.crow, matrix.col, matrix.shape[1])
        pattern.keep_stored(matrix.values, pattern.direct.matrix(matrix.values))
    return matrix
