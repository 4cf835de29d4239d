"""The state of transforms of `torch.func` and of other observers of a call. torch has only private names for
it; this file is the one that uses them."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

# Bound once, since each call of an operator asks dozens of times.
_is_legacy_batch = torch._C._functorch.is_legacy_batchedtensor
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def has_func_transforms() -> bool:
    """Return whether a transform of `torch.func` is active, which transforms a `torch.autograd.Function`, but
    not the gradients of a registered operator.

    >>> has_func_transforms(), torch.func.vmap(lambda x: x * has_func_transforms())(torch.ones(2))
    (False, tensor([1., 1.]))
    """
    if not torch._C._are_functorch_transforms_active():
        return False
    # The key is excluded within `without_func_transforms`, where they transform nothing.
    key = torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode
    is_suspended: bool = torch._C._dispatch_tls_is_dispatch_key_excluded(key)
    return not is_suspended


def are_calls_observed() -> bool:
    """Return whether torch observes the calls of operators in this thread and must see each of them:
    under a trace, a transform, a mode of functions, such as a default device, one of dispatch, such as fake
    tensors, or the profiler.

    >>> are_calls_observed(), torch.func.vmap(lambda x: x * are_calls_observed())(torch.ones(2))
    (False, tensor([1., 1.]))
    """
    return (
        torch.compiler.is_compiling()
        or has_func_transforms()
        or torch._C._len_torch_function_stack() > 0
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._get_tracing_state() is not None
        or torch._C._autograd._profiler_enabled()
    )


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is that of a transform, around another one, and has no memory; gradients may
    read it after the transform. So are those of batches of gradients (`is_grads_batched`).

    >>> torch.func.vmap(lambda x: x * is_wrapped(x))(torch.ones(2)), is_wrapped(torch.ones(2))
    (tensor([1., 1.]), False)
    """
    is_batch: bool = _is_legacy_batch(tensor)
    return is_batch or _is_wrapped(tensor)


def has_hooks(module: torch.nn.Module) -> bool:
    """Return whether a call of a module runs hooks, such as those by which `torch.nn.utils.prune` sets its
    weight.

    >>> from torch.nn.utils import prune
    >>> linear = torch.nn.Linear(2, 2)
    >>> is_plain = not has_hooks(linear)
    >>> _ = prune.random_unstructured(linear, "weight", amount=1)
    >>> is_plain, has_hooks(linear)
    (True, True)
    """
    return bool(
        module._forward_pre_hooks
        or module._forward_hooks
        or module._backward_pre_hooks
        or module._backward_hooks
    )


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
