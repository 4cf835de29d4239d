"""The weights of a dense matrix that remain when it is pruned by magnitude."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch

from gossamer_ir.errors import ArgumentError

PruneKind: TypeAlias = Literal["elements", "blocks", "2:4"]
BLOCK, GROUP = 16, 4


def kept_weights(weight: torch.Tensor, *, sparsity: float, kind: PruneKind) -> torch.Tensor:
    """Return bools that are true for the weights that remain; see `SparseLinear.prune`.

    Raises `ArgumentError` (`layer.sparsity`, `layer.pruning`, `operand.shape`: no multiple of the blocks or
    groups).

    >>> kept_weights(torch.tensor([[1.0, -4.0, 3.0, 2.0]]), sparsity=0.5, kind="elements")
    tensor([[False,  True,  True, False]])
    """
    if not 0 <= sparsity < 1:
        raise ArgumentError(
            "layer.sparsity", f"The sparsity is {sparsity}; expected a number from 0, below 1."
        )
    magnitudes = weight.abs()
    if kind == "elements":
        return _largest(magnitudes, sparsity)
    if kind == "blocks":
        return _largest_blocks(magnitudes, sparsity)
    if kind == "2:4":
        _require_multiple(weight, (1, GROUP))
        groups = magnitudes.reshape(-1, GROUP)
        kept = torch.zeros_like(groups, dtype=torch.bool)
        kept.scatter_(1, groups.topk(2, dim=1).indices, value=1)
        return kept.reshape(weight.shape)
    raise ArgumentError(
        "layer.pruning", f"The kind is '{kind}'; expected 'elements', 'blocks' or '2:4'."
    )


def _largest(magnitudes: torch.Tensor, sparsity: float) -> torch.Tensor:
    count = round(magnitudes.numel() * (1 - sparsity))
    kept = torch.zeros(magnitudes.numel(), dtype=torch.bool, device=magnitudes.device)
    kept[magnitudes.reshape(-1).topk(count).indices] = True
    return kept.reshape(magnitudes.shape)


def _largest_blocks(magnitudes: torch.Tensor, sparsity: float) -> torch.Tensor:
    _require_multiple(magnitudes, (BLOCK, BLOCK))
    rows, columns = (size // BLOCK for size in magnitudes.shape)
    sums = magnitudes.reshape(rows, BLOCK, columns, BLOCK).sum((1, 3))
    kept = _largest(sums, sparsity)
    return kept.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)


def _require_multiple(weight: torch.Tensor, sizes: tuple[int, int]) -> None:
    if any(length % size for length, size in zip(weight.shape, sizes, strict=True)):
        raise ArgumentError(
            "operand.shape",
            f"The weights have the shape {tuple(weight.shape)}; expected multiples of {sizes}.",
        )
