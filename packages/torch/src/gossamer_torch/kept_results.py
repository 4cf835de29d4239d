"""Results that are made from the contents of tensors once, and kept as long as these are alive and unchanged.

Results are found by where their tensors are in memory, since custom operators get other tensors over the same
memory. A result ends with the first of its tensors, or when one of them moves, since another tensor may be in
this place afterwards. It is made again if one of them was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import finalize

import torch
from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

from gossamer_torch.func_transforms import without_func_transforms
from gossamer_torch.tensor_states import TensorMemory, TensorState, has_state, memory_of, state_of

R = TypeVar("R")


class ResultKey(Generic[R]):
    """The key of results of type `R` that are made from the contents of tensors. Keys are equal only to
    themselves, so two results never meet under one name. `options` of its methods tell the results of a key
    for the same tensors from each other.

    >>> NUMBERS = ResultKey[list[int]]("the numbers in a list")
    >>> tensor = torch.tensor([1, 2])
    >>> NUMBERS.find([tensor])
    >>> NUMBERS.get([tensor], tensor.tolist) is NUMBERS.get([tensor], tensor.tolist)
    True
    >>> NUMBERS.find([tensor])
    [1, 2]
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """`name` says in `repr` what is kept."""
        self._name = name

    def __repr__(self) -> str:
        return f"<{self._name}>"

    def find(
        self, sources: Sequence[torch.Tensor], *, options: tuple[Hashable, ...] = ()
    ) -> R | None:
        """Return the result for tensors with these contents; None if there is none yet."""
        by_objects = self._find_by_objects(sources, options)
        if by_objects is not None:
            return cast("R", by_objects.result)
        kept = _kept.get(_Location(self, options, tuple(map(memory_of, sources))))
        return None if kept is None or not kept.is_of(sources) else cast("R", kept.result)

    def get(
        self,
        sources: Sequence[torch.Tensor],
        make: Callable[[], R],
        *,
        options: tuple[Hashable, ...] = (),
    ) -> R:
        """Return the result for tensors with these contents, which `make` computes at the first call."""
        by_objects = self._find_by_objects(sources, options)
        if by_objects is not None:
            return cast("R", by_objects.result)
        sources = [_original_of(source) for source in sources]
        location = _Location(self, options, tuple(map(memory_of, sources)))
        kept = _kept.get(location)
        if kept is None or not kept.is_of(sources):
            states = [state_of(source) for source in sources]
            kept = _keep(location, sources, states, make_to_keep(make))
        result: R = kept.result
        return result

    def _find_by_objects(
        self, sources: Sequence[torch.Tensor], options: tuple[Hashable, ...]
    ) -> _Kept | None:
        """Return the result that was made of these objects, the usual case, if they have not changed."""
        kept = _kept.get(_Location(self, options, tuple(map(id, sources))))
        return kept if kept is not None and kept.is_of_objects(sources) else None


def copy_with_results(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor that has the kept results of the tensor. Custom operators return copies,
    since compiled graphs reuse the memory of results.

    >>> NUMBERS = ResultKey[list[int]]("the numbers in a list")
    >>> tensor = torch.tensor([1, 2])
    >>> copy = copy_with_results(tensor)
    >>> NUMBERS.get([tensor], tensor.tolist) is NUMBERS.get([copy], copy.tolist)
    True
    """
    copy = _copy_to_keep(tensor)
    _keep(_Location(_ORIGINAL, (), (memory_of(copy),)), [copy], [state_of(copy)], tensor)
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
    location = _Location(_CONTENTS, (), (memory_of(tensor),))
    kept = _kept.get(location)
    if kept is None or not kept.is_of([tensor]):
        contents = _copy_to_keep(tensor)
        state = state_of(tensor)._replace(contents=contents)
        kept = _keep(location, [tensor], [state], contents)
    copy: torch.Tensor = kept.result
    return copy


def _copy_to_keep(tensor: torch.Tensor) -> torch.Tensor:
    copy: torch.Tensor = make_to_keep(lambda: tensor.clone(memory_format=torch.contiguous_format))
    return copy


def _original_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor whose copy this is, if it is one and was not changed."""
    kept = _kept.get(_Location(_ORIGINAL, (), (memory_of(tensor),)))
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


_ORIGINAL = ResultKey[torch.Tensor]("the tensor that a copy was made of")
_CONTENTS = ResultKey[torch.Tensor]("a copy that is never written to")


class _Location(NamedTuple):
    """The location of a result: its key and options, and the places of its tensors in memory; or the numbers
    of these objects, which are made and found in less time."""

    key: ResultKey[Any]
    options: tuple[Hashable, ...]
    sources: tuple[TensorMemory, ...] | tuple[int, ...]


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
    location: _Location, sources: Sequence[torch.Tensor], states: Sequence[TensorState], result: Any
) -> _Kept:
    """Keep a result that was made of tensors of these states."""
    _drop_moved(sources[0])
    references = [TensorWeakRef(source) for source in sources]
    kept = _Kept([*zip(references, states, strict=True)], result)
    for one in (location, location._replace(sources=tuple(map(id, sources)))):
        _kept[one] = kept
        for source in sources:
            _locations_of(source).locations.add(one)
    return kept


class _Locations:
    """The locations of the results that a tensor is a source of."""

    def __init__(self) -> None:
        self.locations: set[_Location] = set()


_kept: dict[_Location, _Kept] = {}

_locations: MutableMapping[torch.Tensor, _Locations] = WeakTensorKeyDictionary()
"""For each tensor, the locations of its results, which end with it."""


def _locations_of(tensor: torch.Tensor) -> _Locations:
    locations = _locations.get(tensor)
    if locations is None:
        locations = _locations[tensor] = _Locations()
        finalize(locations, _end_results, locations.locations).atexit = False
    return locations


def _end_results(locations: set[_Location]) -> None:
    for location in [*locations]:
        _drop(location)


def _drop(location: _Location) -> None:
    """End a result. Its tensors forget it: one that lives long may have results with many others."""
    kept = _kept.pop(location, None)
    for reference, _ in kept.sources if kept is not None else ():
        source = reference()
        if source is not None:
            _locations_of(source).locations.discard(location)


def _drop_moved(tensor: torch.Tensor) -> None:
    """Drop the results of earlier places of a tensor, such as before `tensor.data = ...`."""
    locations = _locations_of(tensor).locations
    for location in [*locations]:
        kept = _kept.get(location)
        if kept is None or kept.has_moved():
            locations.discard(location)
            _drop(location)
