"""The calls of a model in torch: the forward pass, or the forward and the backward pass.

Modules of this folder run in environments of their own, which have torch and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from benchmarks.contenders.contender import Prepared, UnavailableError
from benchmarks.models.model_case import ModelCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

Tensors: TypeAlias = dict[str, Any]
Forward: TypeAlias = Callable[[], Any]
Build: TypeAlias = Callable[[ModelCase, Tensors], Forward]
"""Returns the forward pass of a case, over the tensors of its arrays."""

PrepareModel: TypeAlias = Callable[[ModelCase, int], Prepared]


def prepare_with(
    builders: Mapping[str, Build], case: ModelCase, threads: int, *, is_compiled: bool = False
) -> Prepared:
    """Prepare a case with the builder of its model. The first call is made here, which compiles."""
    torch.set_num_threads(threads)
    tensors = tensors_of(case)
    forward = builders[case.model](case, tensors)
    if is_compiled:
        # Sizes are symbolic, so that graphs of other sizes do not compile again.
        forward = torch.compile(forward, dynamic=True)
    leaves = [tensors[name] for name in case.leaves]
    step = (
        training_step(forward, leaves, tensors["seed"])
        if case.is_training
        else inference_step(forward)
    )
    try:
        step()
    except (RuntimeError, NotImplementedError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UnavailableError(f"torch does not do this: {first}") from None
    return Prepared(step, partial(torch.set_num_threads, threads), partial(flat_result, step))


def tensors_of(case: ModelCase) -> Tensors:
    """Return the arrays as tensors; leaves require gradients."""
    tensors = {name: torch.from_numpy(array) for name, array in case.arrays.items()}
    for name in case.leaves:
        tensors[name].requires_grad_(case.is_training)
    return tensors


def inference_step(forward: Forward) -> Callable[[], list[Any]]:
    """Return the call of inference."""

    def step() -> list[Any]:
        with torch.no_grad():
            return [forward()]

    return step


def training_step(forward: Forward, leaves: list[Any], seed: Any) -> Callable[[], list[Any]]:
    """Return the call of the forward and the backward pass."""

    def step() -> list[Any]:
        output = forward()
        return [output, *torch.autograd.grad(output, leaves, seed)]

    return step


def flat_result(step: Callable[[], list[Any]]) -> Array:
    """Return the results of a call in a row."""
    parts = [tensor.detach().numpy().ravel() for tensor in step()]
    return np.concatenate(parts)


def csr_tensor(tensors: Tensors, columns: int | None = None) -> Any:
    """Return the matrix of a case in CSR, square by default."""
    indptr, indices, values = (tensors[name] for name in ("indptr", "indices", "values"))
    rows = len(indptr) - 1
    size = (rows, rows if columns is None else columns)
    return torch.sparse_csr_tensor(indptr, indices, values, size=size)


def edges_of(tensors: Tensors) -> Any:
    """Return the edges of the matrix of a case: sources and targets."""
    indptr, indices = tensors["indptr"].long(), tensors["indices"].long()
    targets = torch.repeat_interleave(torch.arange(len(indptr) - 1), indptr.diff())
    return torch.stack([indices, targets])


def use(module: Any, **tensors: Any) -> None:
    """Replace parameters of a module by tensors."""
    for name, tensor in tensors.items():
        delattr(module, name)
        setattr(module, name, tensor)
