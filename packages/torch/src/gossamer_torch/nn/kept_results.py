"""What is made from the contents of a tensor once, and kept with it as long as nobody writes to it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gossamer_torch.tensor_states import TensorState, has_state, state_of

R = TypeVar("R")


def kept_with(
    tensor: torch.Tensor,
    what: str,
    make: Callable[[], R],
    *,
    beside: Sequence[torch.Tensor] = (),
) -> R:
    """Return what a function makes from the contents of a tensor, and of others `beside` it; it is made again
    if they have changed. Only the last result of a name is kept with a tensor."""
    sources = [tensor, *beside]
    of_tensor = _kept.setdefault(tensor, {})
    kept = of_tensor.get(what)
    if kept is None or not kept.is_of(sources):
        states = [state_of(source) for source in sources]
        # Tensors that are made in inference mode cannot be used in a training step later.
        with torch.inference_mode(False):  # noqa: FBT003 (torch.compile traces no keyword)
            kept = of_tensor[what] = _Kept(states, tuple(beside), make())
    result: R = kept.value
    return result


class _Kept(NamedTuple):
    """A result, and the states of its sources. Those beside the first are kept, so that no new ones have
    their addresses."""

    states: list[TensorState]
    beside: tuple[torch.Tensor, ...]
    value: Any

    def is_of(self, sources: list[torch.Tensor]) -> bool:
        if len(sources) != len(self.states):
            return False
        pairs = zip(sources, self.states, strict=True)
        others = zip(self.beside, self.states[1:], strict=True)
        is_in_place = all(has_state(source, state) for source, state in others)
        return is_in_place and all(has_state(source, state) for source, state in pairs)


_kept: MutableMapping[torch.Tensor, dict[str, _Kept]] = WeakTensorKeyDictionary()
"""For each tensor, the last results that were made from it, by name."""
