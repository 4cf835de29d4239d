"""What torch tells about transforms of `torch.func` by private names only; it has no public ones for it."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def has_func_transforms() -> bool:
    """Return whether a transform of `torch.func` is active, which transforms a `torch.autograd.Function`, but
    not the gradients of a registered operator.

    >>> has_func_transforms(), torch.func.vmap(lambda x: x * has_func_transforms())(torch.ones(2))
    (False, tensor([1., 1.]))
    """
    return torch._C._are_functorch_transforms_active()


def without_func_transforms() -> AbstractContextManager[None]:
    """Return a context in which operations return tensors with memory, which may be kept after a transform.

    >>> numbers = torch.tensor([1, 2])
    >>> def total(x):
    ...     with without_func_transforms():
    ...         return x * sum(numbers.flip(0).tolist())
    >>> torch.func.vmap(total)(torch.ones(2))
    tensor([3., 3.])
    """
    context: AbstractContextManager[None] = torch._C._DisableFuncTorch()
    return context
