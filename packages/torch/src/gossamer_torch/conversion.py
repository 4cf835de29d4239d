"""Sparse matrices of other kinds as matrices of torch's tensors: from an edge index, or gossamer."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import torch

from gossamer_formats import Decomposition, SparseTensor, to_torch
from gossamer_formats.internal_api import replace_values
from gossamer_ir.errors import ArgumentError
from gossamer_support.typed_calls import typed
from gossamer_torch.checks import (
    INDEX_TENSOR_DTYPES,
    require_dense,
    require_indices,
    require_matrix_shape,
    require_tensor_shape,
    require_value_tensor,
)
from gossamer_torch.func_transforms import are_calls_observed
from gossamer_torch.kept_results import make_to_keep
from gossamer_torch.numpy_views import dtype_name_of
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.sparse_matrix import SparseMatrix, matrix_of_checked
from gossamer_torch.tensor_states import TensorState, has_state, state_of
from gossamer_torch.torch_layouts import matrix_of_torch, order_by_rows

SparseOperand: TypeAlias = SparseMatrix | torch.Tensor | SparseTensor | Decomposition
"""The types that operators take as a sparse matrix: a tensor of torch has a sparse layout."""


@typed
def to_sparse_matrix(A: SparseOperand) -> SparseMatrix:
    """Return a sparse matrix in any form as a `SparseMatrix`: a sparse tensor of torch, with its gradients,
    or a tensor of gossamer, also in parts.

    The layouts of torch are CSR, CSC, COO and BSR. CSR is shared; the other layouts are sorted. All elements
    of blocks are stored. Raises `ArgumentError` (`operand.kind`) for anything else.

    >>> to_sparse_matrix(torch.eye(3).to_sparse_coo())
    SparseMatrix(3 by 3, 3 nonzeros, torch.float32)
    """
    if isinstance(A, SparseMatrix):
        return A
    if isinstance(A, torch.Tensor):
        return matrix_of_torch(A)
    if isinstance(A, SparseTensor | Decomposition):
        return _constant_matrix(A) if torch.compiler.is_compiling() else matrix_of_gossamer(A)
    raise ArgumentError(
        "operand.kind",
        f"The matrix has the type '{type(A).__name__}'; expected a SparseMatrix, a sparse tensor of torch or "
        "a tensor of gossamer.",
        hint="Convert a matrix of SciPy with gossamer.from_scipy.",
    )


@typed
def from_edge_index(
    edge_index: torch.Tensor,
    values: torch.Tensor | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> SparseMatrix:
    """Return the matrix with an element for each edge: row 0 of `edge_index` (2 by E) has the rows of the
    elements, row 1 their columns.

    `values` (E) may require a gradient; by default, all are 1. The shape is by default square, and as large
    as the indices require. PyG's edges go from `edge_index[0]` to `edge_index[1]`: the matrix that sums over
    incoming edges is that of `edge_index.flip(0)`.

    Raises `ArgumentError` (`operand.shape`, `operand.dtype`, `operand.kind`, `operand.device`), and
    `FormatError` for an index out of range.

    >>> A = from_edge_index(torch.tensor([[1, 0, 1], [0, 1, 1]]), torch.tensor([1.0, 2.0, 3.0]))
    >>> A.to_dense()
    tensor([[0., 2.],
            [1., 3.]])
    """
    require_dense("edge_index", edge_index, dtypes=INDEX_TENSOR_DTYPES)
    require_tensor_shape("edge_index", edge_index, (2, None))
    rows, columns = edge_index
    if shape is None:
        size = int(edge_index.max()) + 1 if edge_index.numel() else 0
        shape = (size, size)
    require_matrix_shape(shape)
    if values is not None:
        require_value_tensor(values, columns)
    require_indices("edge_index[0]", rows, shape[0])
    require_indices("edge_index[1]", columns, shape[1])
    crow, col, order = order_by_rows(rows, columns, shape)
    taken = None if values is None or order is None else values.index_select(0, order)
    return SparseMatrix(crow, col, taken, shape=shape)


def _constant_matrix(tensor: SparseTensor | Decomposition) -> SparseMatrix:
    """Return a tensor of gossamer as a matrix that is a constant of the graph that is being compiled: torch
    guards the graph by the identity of the tensor."""
    parts = (_crow_of(tensor), _col_of(tensor), _values_of(tensor))
    # torch knows the sizes of a view, but not those of a constant where sizes are dynamic (torch 2.13).
    crow, col, values = (part.view(-1) for part in parts)
    return matrix_of_checked(crow, col, values, _shape_of(tensor))


# One function each: what is assumed to be constant is a tensor or a number, not a matrix.
@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no types here
def _crow_of(tensor: SparseTensor | Decomposition) -> torch.Tensor:
    return matrix_of_gossamer(tensor).crow


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no types here
def _col_of(tensor: SparseTensor | Decomposition) -> torch.Tensor:
    return matrix_of_gossamer(tensor).col


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no types here
def _values_of(tensor: SparseTensor | Decomposition) -> torch.Tensor:
    return matrix_of_gossamer(tensor).values.detach()


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # torch has no types here
def _shape_of(tensor: SparseTensor | Decomposition) -> tuple[int, int]:
    return matrix_of_gossamer(tensor).shape


def matrix_of_gossamer(tensor: SparseTensor | Decomposition) -> SparseMatrix:
    """Return a tensor of gossamer as a `SparseMatrix`, which is made once, and again after it was
    written to; one in parts is composed again. Products are computed with the tensor itself until the values
    of the matrix are written to; writes that torch does not count, through `values.data` or NumPy, are not
    noticed.

    >>> import gossamer as gs, scipy.sparse
    >>> A = gs.from_scipy(scipy.sparse.eye_array(2))
    >>> matrix_of_gossamer(A).to_dense()
    tensor([[1., 0.],
            [0., 1.]], dtype=torch.float64)
    >>> matrix_of_gossamer(A) is matrix_of_gossamer(A)
    True
    """
    # Arrays of a borrowed tensor may change; and tensors of a trace, or of fake memory, end with it.
    if are_calls_observed() or (isinstance(tensor, SparseTensor) and tensor.is_borrowed):
        return _new_matrix(tensor, stored=tensor)
    kept = _in_torch.get(tensor)
    if kept is None or not kept.is_current():
        matrix = make_to_keep(lambda: _new_matrix(tensor, stored=_twin_of(tensor)))
        states = tuple(map(state_of, (matrix.crow, matrix.col, matrix.values)))
        kept = _MatrixInTorch(matrix, states, torch.get_default_dtype())
        _in_torch[tensor] = kept
    return kept.matrix


class _MatrixInTorch(NamedTuple):
    """The matrix of a tensor of gossamer, the states in which its tensors were made, and the dtype to which
    integers were converted."""

    matrix: SparseMatrix
    states: tuple[TensorState, ...]
    default_dtype: torch.dtype

    def is_current(self) -> bool:
        """Return whether the matrix was not written to, its values are not a leaf of gradients, and a new one
        would have the same dtype."""
        matrix = self.matrix
        if matrix.values.requires_grad or self.default_dtype != torch.get_default_dtype():
            return False
        return all(map(has_state, (matrix.crow, matrix.col, matrix.values), self.states))


_in_torch: WeakKeyDictionary[SparseTensor | Decomposition, _MatrixInTorch] = WeakKeyDictionary()
"""The matrix of torch's tensors for each tensor. It is not in the memo of the tensor, which is that of its
twin, too: the twin is kept with the values of the matrix."""


def _twin_of(tensor: SparseTensor | Decomposition) -> SparseTensor | Decomposition:
    """Return a matrix over the arrays of a tensor that has the plans of its calls, and what else is derived
    from it, but does not keep it alive."""
    same: SparseTensor | Decomposition
    if isinstance(tensor, SparseTensor):
        same = replace_values(tensor, tensor.storage.values)
    else:
        same = Decomposition(
            tensor.name, tensor.shape, tensor.dtype, tensor.parts, value_count=tensor.value_count
        )
        same.pattern = tensor.pattern
    same.memo = tensor.memo
    return same


def _new_matrix(
    tensor: SparseTensor | Decomposition, *, stored: SparseTensor | Decomposition
) -> SparseMatrix:
    """Return the matrix of a tensor; products are computed with the `stored` one."""
    csr = tensor.tocsr()
    matrix = matrix_of_torch(to_torch(csr))
    # Integers are converted to floats.
    is_same = csr.value_dtype == dtype_name_of(matrix.values)
    if is_same and not torch.compiler.is_compiling():
        pattern = kept_pattern(matrix.crow, matrix.col, matrix.shape[1])
        pattern.keep_stored(matrix.values, stored)
    return matrix
