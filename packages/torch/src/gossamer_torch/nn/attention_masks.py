"""Masks of attention as sparse matrices."""

from __future__ import annotations

import torch

from gossamer_ir.errors import ArgumentError
from gossamer_torch.sparse_matrix import SparseMatrix


def band_mask(length: int, reach: int) -> SparseMatrix:
    """Return the mask in which i attends to positions at most `reach` away.

    Raises `ArgumentError` (`operand.range`) for a negative number.

    >>> band_mask(3, 1).to_dense().int().tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """
    _require_counts(length=length, reach=reach)
    return _mask_of(*_band(length, reach), length)


def bigbird_mask(
    length: int, *, reach: int, num_global: int, num_random: int, seed: int = 0
) -> SparseMatrix:
    """Return a band with full rows and columns of the first `num_global` positions, and `num_random` random
    positions in each row.

    Raises `ArgumentError` (`operand.range`) for a negative number.

    >>> bigbird_mask(4, reach=0, num_global=1, num_random=0).to_dense().int().tolist()
    [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    """
    _require_counts(length=length, reach=reach, num_global=num_global, num_random=num_random)
    positions = torch.arange(length)
    rows, columns = _band(length, reach)
    first = torch.arange(min(num_global, length))
    far, near = positions.repeat(len(first)), first.repeat_interleave(length)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, max(length, 1), (length * num_random,), generator=generator)
    drawing = positions.repeat_interleave(num_random)
    return _mask_of(
        torch.cat([rows, near, far, drawing]), torch.cat([columns, far, near, drawn]), length
    )


def ragged_mask(offsets: torch.Tensor) -> SparseMatrix:
    """Return the mask in which each position attends to those of its own sequence; sequence s has the
    positions from `offsets[s]` to `offsets[s + 1]` - 1.

    >>> ragged_mask(torch.tensor([0, 2, 3])).to_dense().int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    offsets = offsets.long()
    lengths = offsets.diff()
    total = int(offsets[-1])
    starts, counts = (
        sequence_values.repeat_interleave(lengths) for sequence_values in (offsets[:-1], lengths)
    )
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    within = torch.arange(int(crow[-1]), device=crow.device) - crow[:-1].repeat_interleave(counts)
    return SparseMatrix(crow, starts.repeat_interleave(counts) + within, shape=(total, total))


def _require_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 0:
            raise ArgumentError("operand.range", f"'{name}' is {count}; expected a number from 0.")


def _band(length: int, reach: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.arange(length).repeat_interleave(2 * reach + 1)
    columns = rows + torch.arange(-reach, reach + 1).repeat(length)
    inside = (columns >= 0) & (columns < length)
    return rows[inside], columns[inside]


def _mask_of(rows: torch.Tensor, columns: torch.Tensor, length: int) -> SparseMatrix:
    """Return the mask of positions, which may repeat."""
    keys = torch.unique(rows * length + columns)
    counts = torch.bincount(keys // max(length, 1), minlength=length)
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return SparseMatrix(crow, keys % max(length, 1), shape=(length, length))
