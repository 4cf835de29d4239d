"""Results that are made from the contents of tensors once, and kept as long as these are alive and unchanged.

Results are found by where their tensors are in memory, since custom operators get other tensors over the same
memory. A result ends with the first of its tensors, or when one of them moves, since another tensor may be in
this place afterwards. It is made again if one of them was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import finalize

import torch
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from gossamer_torch.func_transforms import without_func_transforms
from gossamer_torch.tensor_states import TensorMemory, TensorState, has_state, memory_of, state_of

R = TypeVar("R")


def kept_with(sources: Sequence[torch.Tensor], what: Hashable, make: Callable[[], R]) -> R:
    """Return what a function makes from the contents of tensors, which `what` tells from other results.

    >>> numbers = torch.tensor([1, 2])
    >>> kept_with([numbers], "list", numbers.tolist) is kept_with([numbers], "list", numbers.tolist)
    True
    """
    key = _Key(what, tuple(map(memory_of, sources)))
    kept = _kept.get(key)
    if kept is None or not kept.is_of(sources):
        _drop_moved(sources[0])
        states = [(TensorWeakRef(source), state_of(source)) for source in sources]
        kept = _kept[key] = _Kept(states, _make_to_keep(make))
        for source in sources:
            _keys_of(source).keys.add(key)
    result: R = kept.result
    return result


@torch.compiler.disable  # type: ignore[untyped-decorator]  # torch has no types here
def _make_to_keep(make: Callable[[], R]) -> R:
    """Return a result that may be used later: not so are tensors of inference mode, in training, and those of
    a transform, after it."""
    with torch.inference_mode(mode=False), without_func_transforms():
        return make()


class _Key(NamedTuple):
    what: Hashable
    memories: tuple[TensorMemory, ...]


class _Kept(NamedTuple):
    """A result, and the tensors that it was made of with their states."""

    sources: list[tuple[TensorWeakRef, TensorState]]
    result: Any

    def has_moved(self) -> bool:
        """Return whether a source is not in its place, as one that was sent to a process of a `DataLoader`:
        it left the place to other tensors."""
        for reference, state in self.sources:
            source = reference()
            if source is None or memory_of(source) != state.memory:
                return True
        return False

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether these tensors, which are in the same places, have the same contents."""
        pairs = zip(tensors, self.sources, strict=True)
        return not self.has_moved() and all(
            has_state(tensor, state) for tensor, (_, state) in pairs
        )


class _Keys:
    """The keys of the results that a tensor is a source of."""

    def __init__(self) -> None:
        self.keys: set[_Key] = set()


_kept: dict[_Key, _Kept] = {}

_keys: MutableMapping[torch.Tensor, _Keys] = WeakTensorKeyDictionary()
"""For each tensor, its keys, whose results end with it."""


def _keys_of(tensor: torch.Tensor) -> _Keys:
    keys = _keys.get(tensor)
    if keys is None:
        keys = _keys[tensor] = _Keys()
        finalize(keys, _end_results, keys.keys).atexit = False
    return keys


def _end_results(keys: set[_Key]) -> None:
    for key in keys:
        _kept.pop(key, None)


def _drop_moved(tensor: torch.Tensor) -> None:
    """Drop the results of earlier places of a tensor, such as before `tensor.data = ...`."""
    keys = _keys_of(tensor).keys
    for key in [*keys]:
        kept = _kept.get(key)
        if kept is None or kept.has_moved():
            keys.discard(key)
            _kept.pop(key, None)
