"""State of a compiled conversion: the axes built so far and the statements that compute slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.element_loop import ElementLoop
from gossamer_formats.conversion.compiled.program import Compile, run_program
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.known_sizes import KnownSizes
from gossamer_formats.storage import Array, Storage, axes_by_name
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.nodes import Axis, FormatDescription

TABLE_FACTOR = 16
"""The largest number of entries that a table of coordinates or fibers has for each value of the source: NumPy
sorts elements whose coordinates are scattered over a larger range."""

MIN_TABLE = 2**16
"""The size up to which every table is made."""


class NotDirectError(Exception):
    """The programs cannot build this storage from these elements; `needs_order` if they could from sorted and
    distinct ones."""

    def __init__(self, reason: str, *, needs_order: bool = False) -> None:
        super().__init__(reason)
        self.needs_order = needs_order


class Place(NamedTuple):
    """An element's slot of an axis: its number as text, and the number of all slots."""

    text: str
    slots: int


class Store(NamedTuple):
    """A statement of the last program: it stores a coordinate of the element in its place of an index array.

    `most` is the largest value that may be stored; `unused` that of other places, None if there are none.
    """

    axis: str
    handle: str
    most: int
    unused: int | None


ROOT = Place("0", 1)
"""The place of an element before all axes."""


@dataclass
class AssemblyState:
    """The axes that are built so far.

    Statements of all programs see `p`, `l0`, `l1`, ... of the loop over the elements. `order` is the order of
    the elements, None if it is not known (`digit_order`); `requires_order`: a fiber must be sorted.
    """

    source: Storage
    loop: ElementLoop
    target: ConversionTarget
    compile: Compile
    requires_order: bool
    order: tuple[int, ...] | None
    sizes: KnownSizes = field(init=False)
    axes: dict[str, Axis] = field(init=False)
    arguments: dict[str, Array | int] = field(init=False)
    coordinates: dict[str, str] = field(default_factory=dict)
    """The text of an element's coordinate along an axis."""
    logical: dict[str, int] = field(default_factory=dict)
    """The number of the logical coordinate that is the coordinate along an axis."""
    statements: list[str] = field(default_factory=list)
    """The statements that bind the slots of the axes so far."""
    starts: list[str] = field(default_factory=list)
    """The statements before the loops."""
    places: dict[str | None, Place] = field(default_factory=lambda: {None: ROOT})
    position: Place = field(default_factory=lambda: ROOT)
    """The place of the element's value, as far as axes are known."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """The index arrays that are complete."""
    stores: list[Store] = field(default_factory=list)
    in_own_slot: bool = False
    """Each element has a slot of its own along the axes so far."""
    in_order: bool = False
    """The slots of the values are those of the source."""

    def __post_init__(self) -> None:
        self.sizes = KnownSizes(self.description, self.target.sizes)
        self.axes = axes_by_name(self.description)
        self.arguments = dict(self.loop.arguments)

    @property
    def description(self) -> FormatDescription:
        """The description of the target."""
        return self.target.description

    def require_table(self, size: int) -> None:
        if size > max(MIN_TABLE, TABLE_FACTOR * self.source.values.size):
            raise NotDirectError("a table of all coordinates would be too large")

    def occurring(self, value: str, span: int) -> Array:
        """Return the values that occur among the elements, in ascending order."""
        marks = np.zeros(span, np.uint8)
        self.query([f"MARK[{value}] = T.uint8(1)"], {"MARK": marks})
        return np.flatnonzero(marks)

    def numbering(self, name: str, listed: Array, span: int) -> str:
        """Add the array that has the number of each listed value."""
        numbers = np.zeros(span, np.int32)
        numbers[listed] = np.arange(listed.size)
        self.arguments[name] = numbers
        return name

    def query(self, statements: Sequence[str], arguments: Mapping[str, Array | int]) -> None:
        """Run a program with statements for each element."""
        lines = [*self.starts, *self.loop.around([*self.statements, *statements])]
        run_program(self.compile, lines, {**self.arguments, **arguments})

    def set_place(self, axis: Axis, text: str, count: int) -> None:
        """Bind the slot of an axis."""
        if not text.isidentifier() and not text.isdigit():
            self.statements.append(f"t_{axis.name} = {text}")
            text = f"t_{axis.name}"
        self.places[axis.name] = Place(text, count)

    def set_varied(self, axis: Axis, text: str, count: int) -> None:
        self.set_place(axis, text, count)
        self.position = self.places[axis.name]

    def add_offsets(self, axis: Axis, indptr: Indptr, lengths: Array) -> Array:
        offsets = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        self.arrays[indptr.handle] = offsets
        if indptr.nnz is not None and self.sizes.bind(indptr.nnz, int(offsets[-1])) != offsets[-1]:
            raise NotDirectError("the number of slots differs from the one that is given")
        return offsets

    def take(self, name: str, at: str, starts: Array) -> str:
        """Bind a number that counts the elements at `at` from a start, and return its name."""
        cursors = f"CURSOR_{name}"
        fits = starts.max(initial=0) + self.source.values.size <= np.iinfo(np.int32).max
        self.arguments[cursors] = starts.astype(np.int32 if fits else np.int64)
        self.statements += [
            f"at_{name} = {at}",
            f"r_{name} = T.int64({cursors}[at_{name}])"
            if fits
            else f"r_{name} = {cursors}[at_{name}]",
            f"{cursors}[at_{name}] = {cursors}[at_{name}] + 1",
        ]
        return f"r_{name}"
