"""What is made from the contents of a tensor once, and kept with it as long as nobody writes to it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gossamer_torch.tensor_states import TensorState, has_state, state_of

R = TypeVar("R")


def kept_with(
    tensor: torch.Tensor, what: str, make: Callable[[], R], *, beside: torch.Tensor | None = None
) -> R:
    """Return what a function makes from the contents of a tensor, and of another one `beside` it; it is made
    again if they have changed. Only the last result of a name is kept with a tensor."""
    sources = [tensor] if beside is None else [tensor, beside]
    of_tensor = _kept.setdefault(tensor, {})
    kept = of_tensor.get(what)
    if kept is None or not kept.is_of(sources):
        states = [state_of(source) for source in sources]
        # Tensors that are made in inference mode cannot be used in a training step later.
        with torch.inference_mode(False):  # noqa: FBT003 (torch.compile traces no keyword)
            kept = of_tensor[what] = _Kept(states, beside, make())
    result: R = kept.value
    return result


class _Kept(NamedTuple):
    """A result, and the states of its sources. The second of them is kept, so that no new one has its
    address."""

    states: list[TensorState]
    beside: torch.Tensor | None
    value: Any

    def is_of(self, sources: list[torch.Tensor]) -> bool:
        if len(sources) != len(self.states):
            return False
        pairs = zip(sources, self.states, strict=True)
        is_in_place = self.beside is None or has_state(self.beside, self.states[1])
        return is_in_place and all(has_state(source, state) for source, state in pairs)


_kept: MutableMapping[torch.Tensor, dict[str, _Kept]] = WeakTensorKeyDictionary()
"""For each tensor, the last results that were made from it, by name."""
