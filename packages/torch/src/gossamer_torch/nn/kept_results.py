"""What is made from the contents of a tensor once, and kept with it as long as nobody writes to it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch.utils.weak import WeakTensorKeyDictionary

R = TypeVar("R")


def kept_with(
    tensor: torch.Tensor, what: str, make: Callable[[], R], *, beside: torch.Tensor | None = None
) -> R:
    """Return what a function makes from the contents of a tensor, and of another one `beside` it; it is made
    again if they have changed."""
    of_tensor = _kept.setdefault(tensor, {})
    key = (what, None if beside is None else beside.data_ptr())
    versions = tuple(_version(source) for source in (tensor, beside))
    if key not in of_tensor or of_tensor[key].versions != versions:
        # The other tensor is kept, so that no new one has its address.
        of_tensor[key] = _Kept(versions, beside, make())
    result: R = of_tensor[key].value
    return result


class _Kept(NamedTuple):
    versions: tuple[int, ...]
    beside: torch.Tensor | None
    value: Any


def _version(tensor: torch.Tensor | None) -> int:
    """Return the number of writes to a tensor; those of inference mode are not counted."""
    return 0 if tensor is None or tensor.is_inference() else tensor._version


_kept: MutableMapping[torch.Tensor, dict[tuple[str, int | None], _Kept]] = WeakTensorKeyDictionary()
"""For each tensor, what was made from it, by name and the address of the tensor beside it."""
