"""The two products of a layer, of which both orders give the same result, and sums with them."""

from __future__ import annotations

import torch

from gossamer_torch.func_transforms import has_func_transforms


def receives_first(x: torch.Tensor, out_channels: int) -> bool:
    """Return whether (A X) W takes less time than A (X W). The product with the sparse matrix takes the time:
    a training step multiplies features of the gradient, too, unless X is constant and comes first.

    >>> receives_first(torch.ones(3, 8), 4), receives_first(torch.ones(3, 8, requires_grad=True), 4)
    (True, False)
    """
    needs_gradient = torch.is_grad_enabled() and not x.requires_grad
    return x.shape[1] <= (2 * out_channels if needs_gradient else out_channels)


def add_to_product(product: torch.Tensor, term: torch.Tensor) -> torch.Tensor:
    """Return the sum of a product without other references and a term, which is added in place: a new array
    takes as long as to read the weights.

    >>> product = torch.ones(2, 2)
    >>> add_to_product(product, torch.tensor([1.0, 2.0])) is product
    True
    """
    # Not in place if the sum has another dtype, or a dimension of a transform that the product lacks.
    if product.dtype == term.dtype and not has_func_transforms():
        return product.add_(term)
    return product + term
