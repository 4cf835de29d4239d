"""The order of the two products of a layer: both orders give the same result."""

from __future__ import annotations

import torch


def receives_first(x: torch.Tensor, out_channels: int) -> bool:
    """Return whether (A X) W takes less time than A (X W). The product with the sparse matrix takes the time:
    a training step multiplies features of the gradient, too, unless X is constant and comes first.

    >>> receives_first(torch.ones(3, 8), 4), receives_first(torch.ones(3, 8, requires_grad=True), 4)
    (True, False)
    """
    needs_gradient = torch.is_grad_enabled() and not x.requires_grad
    return x.shape[1] <= (2 * out_channels if needs_gradient else out_channels)
