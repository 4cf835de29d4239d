"""States of tensors, by which what was made from their contents is known to be current.

torch counts writes to a tensor, except in inference mode, whose tensors are compared with a copy. Writes that
torch does not count (through `tensor.data` or NumPy) are not noticed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class TensorMemory(NamedTuple):
    """The place of the elements of a tensor in memory."""

    address: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class TensorState(NamedTuple):
    """The memory of a tensor, and the number of writes to it; a copy of a tensor of inference mode."""

    memory: TensorMemory
    version: int
    contents: torch.Tensor | None


def memory_of(tensor: torch.Tensor) -> TensorMemory:
    """Return where the elements of a tensor are; `tensor.data = ...` and `share_memory_` change it."""
    return TensorMemory(
        tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
    )


def state_of(tensor: torch.Tensor) -> TensorState:
    """Return the state of a tensor.

    >>> indices = torch.tensor([0, 1])
    >>> state = state_of(indices)
    >>> indices[0] = 1
    >>> has_state(indices, state)
    False
    """
    contents = tensor.clone() if tensor.is_inference() else None
    return TensorState(memory_of(tensor), _version(tensor), contents)


def has_state(tensor: torch.Tensor, state: TensorState) -> bool:
    """Return whether a tensor has the contents of a state, as far as torch tells."""
    if not _is_at(tensor, state.memory) or _version(tensor) != state.version:
        return False
    return state.contents is None or torch.equal(tensor, state.contents)


def _is_at(tensor: torch.Tensor, memory: TensorMemory) -> bool:
    """Return whether the elements of a tensor are there. To make its place first would take 1.5 times as
    long."""
    return (
        tensor.data_ptr() == memory.address
        and tensor.shape == memory.shape
        and tensor.stride() == memory.stride
        and tensor.dtype == memory.dtype
    )


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
