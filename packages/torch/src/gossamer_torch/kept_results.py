"""Results that are made from the contents of tensors once, and kept as long as these are alive and unchanged.

Results are found by where their tensors are in memory, since custom operators get other tensors over the same
memory. A result ends with the first of its tensors, or when one of them moves, since another tensor may be in
this place afterwards. It is made again if one of them was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast
from weakref import finalize

import torch
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from gossamer_torch.func_transforms import without_func_transforms
from gossamer_torch.tensor_states import TensorMemory, TensorState, has_state, memory_of, state_of

R = TypeVar("R")


def memoize_with(sources: Sequence[torch.Tensor], what: Hashable, make: Callable[[], R]) -> R:
    """Return what a function makes from the contents of tensors, which `what` tells from other results.

    >>> numbers = torch.tensor([1, 2])
    >>> memoize_with([numbers], "list", numbers.tolist) is memoize_with([numbers], "list", numbers.tolist)
    True
    """
    of_objects = _entry_of_objects(sources, what)
    if of_objects is not None:
        return cast("R", of_objects.result)
    sources = [_original_of(source) for source in sources]
    key = _Key(what, tuple(map(memory_of, sources)))
    kept = _kept.get(key)
    if kept is None or not kept.is_of(sources):
        states = [state_of(source) for source in sources]
        kept = _keep(key, sources, states, make_to_keep(make))
    result: R = kept.result
    return result


def kept_result(sources: Sequence[torch.Tensor], what: Hashable) -> Any:
    """Return the result that `memoize_with` keeps for tensors with these contents; None if there is none.

    >>> numbers = torch.tensor([1, 2])
    >>> print(kept_result([numbers], "list"))
    None
    >>> _ = memoize_with([numbers], "list", numbers.tolist)
    >>> kept_result([numbers], "list")
    [1, 2]
    """
    of_objects = _entry_of_objects(sources, what)
    if of_objects is not None:
        return of_objects.result
    kept = _kept.get(_Key(what, tuple(map(memory_of, sources))))
    return None if kept is None or not kept.is_of(sources) else kept.result


def _entry_of_objects(sources: Sequence[torch.Tensor], what: Hashable) -> _Kept | None:
    """Return the result that was made of these objects, the usual case, if they have not changed."""
    kept = _kept.get(_Key(what, tuple(map(id, sources))))
    return kept if kept is not None and kept.is_of_objects(sources) else None


def copy_with_results(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor that has the kept results of the tensor. Custom operators return copies,
    since compiled graphs reuse the memory of results.

    >>> numbers = torch.tensor([1, 2])
    >>> copy = copy_with_results(numbers)
    >>> memoize_with([numbers], "list", numbers.tolist) is memoize_with([copy], "list", copy.tolist)
    True
    """
    copy = _copy_to_keep(tensor)
    _keep(_Key(_ORIGINAL, (memory_of(copy),)), [copy], [state_of(copy)], tensor)
    return copy


def kept_contents(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor that is never written to: the same one as long as the contents are equal.
    Compiled graphs write to memory that they reuse without a count, so that contents must be compared.

    >>> numbers = torch.tensor([1, 2])
    >>> first = kept_contents(numbers)
    >>> numbers.numpy()[0] = 5
    >>> kept_contents(numbers)
    tensor([5, 2])
    >>> first
    tensor([1, 2])
    """
    original = _original_of(tensor)
    if original is not tensor and torch.equal(original, tensor):
        return original
    key = _Key(_CONTENTS, (memory_of(tensor),))
    kept = _kept.get(key)
    if kept is None or not kept.is_of([tensor]):
        contents = _copy_to_keep(tensor)
        state = state_of(tensor)._replace(contents=contents)
        kept = _keep(key, [tensor], [state], contents)
    copy: torch.Tensor = kept.result
    return copy


def _copy_to_keep(tensor: torch.Tensor) -> torch.Tensor:
    copy: torch.Tensor = make_to_keep(lambda: tensor.clone(memory_format=torch.contiguous_format))
    return copy


def _original_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor whose copy this is, if it is one and was not changed."""
    kept = _kept.get(_Key(_ORIGINAL, (memory_of(tensor),)))
    if kept is None or not kept.is_of([tensor]):
        return tensor
    original: torch.Tensor = kept.result
    return original


@torch.compiler.disable  # type: ignore[untyped-decorator]  # torch has no types here
def make_to_keep(make: Callable[[], R]) -> R:
    """Return a result that may be used later: not so are tensors of inference mode, in training, and those of
    a transform, after it."""
    with torch.inference_mode(mode=False), without_func_transforms():
        return make()


_ORIGINAL, _CONTENTS = "original", "contents"
"""The keys of results: with a copy, the tensor that it is a copy of; with a tensor, a copy."""


class _Key(NamedTuple):
    """The kind of a result, and the places of its tensors in memory; or the numbers of these objects, which
    are made and found in less time."""

    what: Hashable
    places: tuple[TensorMemory, ...] | tuple[int, ...]


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

    def is_of_objects(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether the result is that of these objects, which have not changed. Tensors whose contents
        are compared are left to `is_of`."""
        return all(
            reference() is tensor and state.contents is None and has_state(tensor, state)
            for tensor, (reference, state) in zip(tensors, self.sources, strict=True)
        )

    def is_of(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether these tensors, which are in the same places, have the same contents."""
        pairs = zip(tensors, self.sources, strict=True)
        return not self.has_moved() and all(
            has_state(tensor, state) for tensor, (_, state) in pairs
        )


def _keep(
    key: _Key, sources: Sequence[torch.Tensor], states: Sequence[TensorState], result: Any
) -> _Kept:
    """Keep a result that was made of tensors of these states."""
    _drop_moved(sources[0])
    references = [TensorWeakRef(source) for source in sources]
    kept = _Kept([*zip(references, states, strict=True)], result)
    for place_key in (key, _Key(key.what, tuple(map(id, sources)))):
        _kept[place_key] = kept
        for source in sources:
            _keys_of(source).keys.add(place_key)
    return kept


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
    for key in [*keys]:
        _drop(key)


def _drop(key: _Key) -> None:
    """End a result. Its tensors forget the key: one that lives long may have results with many others."""
    kept = _kept.pop(key, None)
    for reference, _ in kept.sources if kept is not None else ():
        source = reference()
        if source is not None:
            _keys_of(source).keys.discard(key)


def _drop_moved(tensor: torch.Tensor) -> None:
    """Drop the results of earlier places of a tensor, such as before `tensor.data = ...`."""
    keys = _keys_of(tensor).keys
    for key in [*keys]:
        kept = _kept.get(key)
        if kept is None or kept.has_moved():
            keys.discard(key)
            _drop(key)
