"""The state of one call of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.interpret.memory.layout import Layout
from gossamer_ir.interpret.memory.levels import Level, Levels
from gossamer_ir.interpret.memory.views import View, ViewIndices
from gossamer_ir.interpret.threads.grid import ThreadGrid
from gossamer_support.arrays import Array


class FiberPosition(msgspec.Struct, frozen=True):
    """The position of an iteration variable in the fiber of an element of the parent axis."""

    level: Level
    parent: int | None
    position: int


class Views(dict[str, View]):
    """The views of a function's buffers by name, made on first use."""

    def __init__(self, make: Callable[[str], View]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> View:
        view = self[name] = self._make(name)
        return view

    def copy(self) -> Views:
        """Return views of the same arrays, to which others may be added."""
        views = Views(self._make)
        views.update(self)
        return views


class Initialized:
    """The elements that an init has written, which later runs of the init must not write again."""

    def __init__(self) -> None:
        self._done: set[tuple[View, tuple[int, ...]]] = set()
        self._now: set[tuple[View, tuple[int, ...]]] = set()

    def is_new(self, view: View, indices: ViewIndices) -> bool:
        """Return whether no earlier run of the init wrote this element; records it as written by this run."""
        element = view, tuple(int(index) for index in indices)
        self._now.add(element)
        return element not in self._done

    def end(self) -> None:
        """End a run of the init."""
        self._done |= self._now
        self._now.clear()


class Frame:
    """The variables, arrays and buffers of a running function, and the state of its iterations.

    `elements` and `coordinates` are the current ones of the axes being iterated, `iters` the positions
    of iteration variables. `initialized` has the elements written by the running init, None outside of
    inits; `inits` those of each block, by the values of the loops that repeat its init. `grid` is the state
    that the threads of a grid share.
    """

    __slots__ = (
        "arrays", "coordinates", "elements", "grid", "initialized", "inits", "iters", "layouts",
        "levels", "values", "views",
    )  # fmt: skip

    def __init__(self, values: dict[str, Any], arrays: Mapping[str, Array]) -> None:
        self.values = values
        self.arrays = dict(arrays)
        self.elements: dict[str, int | None] = {}
        self.coordinates: dict[str, int] = {}
        self.iters: dict[str, FiberPosition] = {}
        self.initialized: Initialized | None = None
        self.inits: dict[str, dict[tuple[int, ...], Initialized]] = {}
        self.layouts: dict[str, Layout] = {}
        self.grid = ThreadGrid()
        self.levels: Levels
        self.views: Views

    def thread_frame(self) -> Frame:
        """Return a frame with variables and allocations of its own, for a thread that others run beside."""
        frame = copy(self)
        frame.values, frame.views = dict(self.values), self.views.copy()
        return frame


Eval: TypeAlias = Callable[[Frame], Any]
"""Evaluates an expression."""

Exec: TypeAlias = Callable[[Frame], None]
"""Runs a statement."""
