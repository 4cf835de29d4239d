"""Sparse tensors of torch, in each of its layouts, as matrices in CSR."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import require_dense, require_device, require_tensor_shape
from gossamer_torch.counting_sort import counting_order
from gossamer_torch.func_transforms import are_calls_observed
from gossamer_torch.kept_results import make_to_keep
from gossamer_torch.numpy_views import shared_array
from gossamer_torch.sparse_matrix import SparseMatrix
from gossamer_torch.tensor_states import TensorState, has_state, state_of


class OrderedIndices(NamedTuple):
    """The indices of a matrix in CSR, and the places of its elements in the values; None if the values have
    the order of the matrix."""

    crow: torch.Tensor
    col: torch.Tensor
    order: torch.Tensor | None


def matrix_of_torch(tensor: torch.Tensor) -> SparseMatrix:
    """Return a sparse tensor of torch as a `SparseMatrix`, as `to_sparse_matrix` does. Its elements are
    sorted once, and again only after its indices have changed.

    >>> matrix_of_torch(torch.eye(2).to_sparse_csr()).crow
    tensor([0, 1, 2])
    """
    _require_matrix(tensor)
    rows, columns = tensor.shape
    stored = tensor
    if not (tensor.is_floating_point() or tensor.is_complex()):
        # Masks and adjacency matrices are of bool or integers; products need floating-point values.
        stored = tensor.to(torch.get_default_dtype())
    if stored.layout == torch.sparse_coo:
        stored = stored.coalesce()
    crow, col, order = _ordered_indices(tensor, stored)
    values = stored.values()
    if order is not None:
        values = values.reshape(-1).index_select(0, order)
    elif not values.requires_grad:
        # A view has the sparse tensor as its base, which torch.compile cannot capture.
        values = values.detach()
    return SparseMatrix(crow, col, values, shape=(rows, columns))


def _require_matrix(tensor: torch.Tensor) -> None:
    if tensor.is_nested:
        require_dense("the matrix", tensor)
    if tensor.dim() != 2:
        require_tensor_shape("the matrix", tensor, (None, None))
    require_device("the matrix", tensor)
    if tensor.layout not in _LAYOUTS:
        raise ArgumentError(
            "operand.kind",
            f"The matrix has the layout {tensor.layout}; expected CSR, CSC, COO or BSR.",
            hint="Convert it with tensor.to_sparse_csr().",
        )
    if tensor.layout == torch.sparse_coo and tensor.sparse_dim() != 2:
        raise ArgumentError(
            "operand.kind",
            f"The matrix has {tensor.sparse_dim()} sparse and {tensor.dense_dim()} dense dimensions; "
            "expected 2 sparse ones.",
            hint="Convert it with tensor.to_dense().to_sparse_coo().",
        )
    is_leaf = tensor.is_leaf and tensor.requires_grad and torch.is_grad_enabled()
    if is_leaf and tensor.layout in (torch.sparse_csc, torch.sparse_bsr):
        raise ArgumentError(
            "operand.kind",
            f"The matrix is a leaf of the layout {tensor.layout} that requires a gradient, and torch cannot "
            "accumulate one there.",
            hint="Use CSR or COO, or make the matrix of a tensor that requires the gradient.",
        )


class _KeptIndices(NamedTuple):
    """The indices made of those of a sparse tensor, with the states and copies of the latter."""

    states: tuple[TensorState, ...]
    copies: tuple[torch.Tensor, ...]
    indices: OrderedIndices


_kept_indices: MutableMapping[torch.Tensor, _KeptIndices] = WeakTensorKeyDictionary()
"""The indices that were kept for each sparse tensor. Its parts are other objects at each access."""


def _ordered_indices(tensor: torch.Tensor, stored: torch.Tensor) -> OrderedIndices:
    """Return the indices of a sparse tensor, or of the one that is `stored` in its place, in CSR."""
    layout = _LAYOUTS[stored.layout]
    parts = layout.parts(stored)
    if are_calls_observed():
        return layout.order(stored, *parts)
    kept = _kept_indices.get(tensor)
    if kept is not None and all(map(has_state, parts, kept.states)):
        return kept.indices
    states = tuple(map(state_of, parts))
    # All parts of a tensor have one count of writes, also of those to the values alone.
    if kept is not None and all(map(torch.equal, parts, kept.copies)):
        kept = kept._replace(states=states)
    else:
        copies = make_to_keep(lambda: tuple(part.clone() for part in parts))
        kept = _KeptIndices(states, copies, make_to_keep(lambda: layout.order(stored, *parts)))
    _kept_indices[tensor] = kept
    return kept.indices


class _Layout(NamedTuple):
    """A layout of torch: the index tensors of a tensor, and what makes indices in CSR of them."""

    parts: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    order: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], OrderedIndices]


def order_by_rows(
    rows: torch.Tensor, columns: torch.Tensor, shape: tuple[int, int]
) -> OrderedIndices:
    """Return the indices of coordinates in any order, sorted. The host sorts them, also those of a GPU.

    >>> order_by_rows(torch.tensor([1, 0]), torch.tensor([0, 1]), (2, 2)).order
    tensor([1, 0])
    """
    by_column = counting_order(shared_array(columns.cpu()), shape[1]).order
    offsets, by_row = counting_order(shared_array(rows.cpu())[by_column], shape[0])
    order = torch.from_numpy(by_column[by_row]).long().to(columns.device)
    crow = torch.from_numpy(offsets).to(columns.dtype).to(columns.device)
    return OrderedIndices(crow, columns.index_select(0, order), order)


def _order_csr(_tensor: torch.Tensor, crow: torch.Tensor, col: torch.Tensor) -> OrderedIndices:
    # With a count of writes of their own: what is kept for them does not end with a write to the values.
    return OrderedIndices(crow.data, col.data, None)


def _order_csc(tensor: torch.Tensor, ccol: torch.Tensor, row: torch.Tensor) -> OrderedIndices:
    return order_by_rows(row, _range_numbers(ccol), (tensor.shape[0], tensor.shape[1]))


def _order_coo(tensor: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> OrderedIndices:
    return order_by_rows(rows, columns, (tensor.shape[0], tensor.shape[1]))


def _order_bsr(tensor: torch.Tensor, crow: torch.Tensor, col: torch.Tensor) -> OrderedIndices:
    shape = tensor.values().shape
    _, height, width = shape
    down, across = (
        torch.arange(size, dtype=col.dtype, device=col.device) for size in (height, width)
    )
    rows = _range_numbers(crow)[:, None, None] * height + down[:, None]
    columns = col[:, None, None] * width + across
    rows, columns = (coordinates.expand(shape).reshape(-1) for coordinates in (rows, columns))
    return order_by_rows(rows, columns, (tensor.shape[0], tensor.shape[1]))


def _range_numbers(offsets: torch.Tensor) -> torch.Tensor:
    """Return the number of the range that each element is in."""
    numbers = torch.arange(offsets.numel() - 1, dtype=offsets.dtype, device=offsets.device)
    return torch.repeat_interleave(numbers, offsets.diff())


_LAYOUTS = {
    torch.sparse_csr: _Layout(
        lambda tensor: (tensor.crow_indices(), tensor.col_indices()), _order_csr
    ),
    torch.sparse_csc: _Layout(
        lambda tensor: (tensor.ccol_indices(), tensor.row_indices()), _order_csc
    ),
    torch.sparse_coo: _Layout(
        lambda tensor: (tensor.indices()[0], tensor.indices()[1]), _order_coo
    ),
    torch.sparse_bsr: _Layout(
        lambda tensor: (tensor.crow_indices(), tensor.col_indices()), _order_bsr
    ),
}
