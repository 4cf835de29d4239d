"""A linear layer with pruned weights."""

from __future__ import annotations

import torch

import gossamer as gs
from gossamer_formats import Decomposition, SparseTensor
from gossamer_ir.errors import ArgumentError
from gossamer_torch.checks import require_cpu
from gossamer_torch.conversion import SparseOperand, to_sparse_matrix
from gossamer_torch.nn.propagation import add_to_product
from gossamer_torch.nn.pruning import PruneKind, kept_weights
from gossamer_torch.numpy_views import shared_array, tensor_of
from gossamer_torch.operators.spmm import spmm
from gossamer_torch.patterns import kept_pattern
from gossamer_torch.sparse_matrix import SparseMatrix
from gossamer_torch.tensor_states import TensorState, has_state, state_of


class SparseLinear(torch.nn.Module):
    """x W^T + b with a sparse matrix W (`out_features` by `in_features`).

    `weight` is a sparse matrix in any form; its values become the parameter `values`, and gradients stay on
    its pattern. `forward` takes `x` (..., `in_features`) and returns (..., `out_features`).
    `SparseLinear.prune` makes the layer from a dense one.

    Raises `ArgumentError` (`operand.shape`: the bias does not fit).

    >>> layer = SparseLinear.prune(torch.nn.Linear(16, 4), sparsity=0.75)
    >>> layer(torch.ones(2, 16)).shape, layer.values.shape
    (torch.Size([2, 4]), torch.Size([16]))
    """

    def __init__(self, weight: SparseOperand, bias: torch.Tensor | None = None) -> None:
        super().__init__()
        matrix = to_sparse_matrix(weight)
        self.out_features, self.in_features = matrix.shape
        if bias is not None and bias.shape != (self.out_features,):
            raise ArgumentError(
                "operand.shape",
                f"'bias' has the shape {tuple(bias.shape)}; expected ({self.out_features},).",
            )
        self.crow: torch.Tensor
        self.col: torch.Tensor
        # Copies: load_state_dict writes to buffers.
        self.register_buffer("crow", matrix.crow.clone())
        self.register_buffer("col", matrix.col.clone())
        self.values = torch.nn.Parameter(matrix.values.detach().clone())
        self.bias = None if bias is None else torch.nn.Parameter(bias.detach().clone())
        self._prepared: SparseTensor | Decomposition | None = None
        self._prepared_from: list[TensorState] = []

    @classmethod
    def prune(
        cls, linear: torch.nn.Linear, *, sparsity: float = 0.9, kind: PruneKind = "elements"
    ) -> SparseLinear:
        """Return a dense layer with the weights of least magnitude removed: "elements" anywhere, "blocks" of
        16 by 16, or "2:4", the two smaller ones of each four in a row (then `sparsity` is not used).

        >>> SparseLinear.prune(torch.nn.Linear(8, 2), kind="2:4").values.shape
        torch.Size([8])
        """
        weight = linear.weight.detach()
        kept = kept_weights(weight, sparsity=sparsity, kind=kind)
        rows, columns = torch.nonzero(kept, as_tuple=True)
        counts = torch.bincount(rows, minlength=weight.shape[0])
        crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        shape = (linear.out_features, linear.in_features)
        return cls(SparseMatrix(crow, columns, weight[kept], shape=shape), linear.bias)

    @property
    def weight(self) -> SparseMatrix:
        """The matrix W."""
        shape = (self.out_features, self.in_features)
        return SparseMatrix(self.crow, self.col, self.values, shape=shape)

    def prepare(self, tokens: int) -> None:
        """Convert the weights to the format that is fastest for this number of rows of `x`, for calls without
        gradients. The conversion is dropped by `train`, and not used after a write to the weights, such as by
        `load_state_dict`, or in a copy of the layer; call `prepare` again then. Raises `ArgumentError`
        (`operand.device`) for a layer on a GPU.

        >>> layer = SparseLinear.prune(torch.nn.Linear(16, 4)).eval()
        >>> layer.prepare(tokens=2)
        >>> with torch.no_grad():
        ...     print(layer(torch.ones(2, 16)).shape)
        torch.Size([2, 4])
        """
        require_cpu("values", self.values)
        pattern = kept_pattern(self.crow, self.col, self.in_features)
        matrix = pattern.direct.matrix(self.values)
        self._prepared = gs.prepare(matrix, features=tokens)
        self._prepared_from = [state_of(tensor) for tensor in self._sources()]

    def train(self, mode: bool = True) -> SparseLinear:  # noqa: FBT001, FBT002
        """Set the mode as torch does, whose signature this is; for training, drop the conversion."""
        if mode:
            self._prepared = None
        super().train(mode)
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs."""
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise ArgumentError(
                "operand.shape",
                f"'x' has the shape {tuple(x.shape)}; expected (..., {self.in_features}).",
            )
        tokens = x.reshape(-1, self.in_features)
        product = self._product(tokens.t().contiguous())
        if self.bias is not None:
            # Not in the transposed view, whose gradient would be copied.
            product = add_to_product(product, self.bias[:, None])
        return product.t().reshape(*x.shape[:-1], self.out_features)

    def _product(self, columns: torch.Tensor) -> torch.Tensor:
        prepared = None if torch.is_grad_enabled() else self._current_conversion()
        if prepared is None:
            return spmm(self.weight, columns)
        return tensor_of(gs.spmm(prepared, shared_array(columns)), columns.dtype)

    def _current_conversion(self) -> SparseTensor | Decomposition | None:
        if self._prepared is None:
            return None
        pairs = zip(self._sources(), self._prepared_from, strict=True)
        return self._prepared if all(has_state(tensor, state) for tensor, state in pairs) else None

    def _sources(self) -> list[torch.Tensor]:
        return [self.crow, self.col, self.values]

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, nonzeros={len(self.values)}"
