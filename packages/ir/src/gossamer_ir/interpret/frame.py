"""The state of one running function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gossamer_ir.interpret.layout import Layout
from gossamer_ir.interpret.levels import Level, Levels
from gossamer_ir.interpret.values import Array
from gossamer_ir.interpret.views import View


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


class Frame:
    """Variables, arrays and buffers of a function, and what its iterations stand at.

    `elements` and `coordinates` are those of the axes being iterated; `initialised` holds the
    elements that the running init has written, None outside one.
    """

    __slots__ = (
        "arrays", "coordinates", "elements", "initialised", "iterators", "layouts", "levels",
        "values", "views",
    )  # fmt: skip

    def __init__(self, values: dict[str, Any], arrays: Mapping[str, Array]) -> None:
        self.values = values
        self.arrays = dict(arrays)
        self.elements: dict[str, int | None] = {}
        self.coordinates: dict[str, int] = {}
        self.iterators: dict[str, Iterator] = {}
        self.initialised: set[tuple[str, tuple[int, ...]]] | None = None
        self.layouts: dict[str, Layout] = {}
        self.levels: Levels
        self.views: Views


Eval = Callable[[Frame], Any]
"""Computes an expression."""

Exec = Callable[[Frame], None]
"""Runs a statement."""
