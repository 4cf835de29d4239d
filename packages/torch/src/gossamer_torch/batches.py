"""Batches of operands, whose dimensions in front become one for custom operators."""

from __future__ import annotations

import math

import torch


def flattened_batch(tensor: torch.Tensor, dimensions: int) -> torch.Tensor:
    """Return a tensor whose dimensions before the last ones, of which there may be none, are one.

    >>> flattened_batch(torch.ones(2, 3, 0), 1).shape, flattened_batch(torch.ones(4), 1).shape
    (torch.Size([6, 0]), torch.Size([1, 4]))
    """
    # reshape(-1, ...) refuses tensors without elements.
    count = math.prod(tensor.shape[:-dimensions])
    return tensor.reshape(count, *tensor.shape[-dimensions:])
