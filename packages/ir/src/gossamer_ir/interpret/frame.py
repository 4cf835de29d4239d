"""The state of one running function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gossamer_ir.interpret.layout import Layout
from gossamer_ir.interpret.levels import Level, Levels
from gossamer_ir.interpret.values import Array
from gossamer_ir.interpret.views import Indices, View


class Iterator(NamedTuple):
    """Where an iteration's variable stands: a position in the fibre of a parent's element."""

    level: Level
    parent: int | None
    position: int


class Views(dict[str, View]):
    """The views of a function's buffers by name, made when first used."""

    def __init__(self, make: Callable[[str], View]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> View:
        view = self[name] = self._make(name)
        return view


class Initialised:
    """The elements that an init has written: where it runs again, it leaves them as they are."""

    def __init__(self) -> None:
        self._done: set[tuple[View, tuple[int, ...]]] = set()
        self._now: set[tuple[View, tuple[int, ...]]] = set()

    def is_new(self, view: View, indices: Indices) -> bool:
        """Whether an element that is to be written was not written before the init ran this time."""
        element = view, tuple(int(index) for index in indices)
        self._now.add(element)
        return element not in self._done

    def end(self) -> None:
        """The init has run once more."""
        self._done |= self._now
        self._now.clear()


class Frame:
    """Variables, arrays and buffers of a function, and what its iterations stand at.

    `elements` and `coordinates` are those of the axes being iterated; `initialised` holds the
    elements that the running init has written, None outside one, and `inits` those of each block.
    """

    __slots__ = (
        "arrays", "coordinates", "elements", "initialised", "inits", "iterators", "layouts", "levels",
        "values", "views",
    )  # fmt: skip

    def __init__(self, values: dict[str, Any], arrays: Mapping[str, Array]) -> None:
        self.values = values
        self.arrays = dict(arrays)
        self.elements: dict[str, int | None] = {}
        self.coordinates: dict[str, int] = {}
        self.iterators: dict[str, Iterator] = {}
        self.initialised: Initialised | None = None
        self.inits: dict[str, dict[tuple[int, ...], Initialised]] = {}
        self.layouts: dict[str, Layout] = {}
        self.levels: Levels
        self.views: Views


Eval = Callable[[Frame], Any]
"""Computes an expression."""

Exec = Callable[[Frame], None]
"""Runs a statement."""
