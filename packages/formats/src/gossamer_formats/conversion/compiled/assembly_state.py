"""State of a compiled conversion: the axes built so far and the statements that compute slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.compiled.element_loop import LARGEST_CONSTANT, ElementLoop
from gossamer_formats.conversion.compiled.element_order import ElementOrder
from gossamer_formats.conversion.compiled.program import Compile, Operand, run_program, widened
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.dtypes import native_index_dtype
from gossamer_formats.conversion.known_sizes import KnownSizes
from gossamer_formats.storage import Array, Storage, axes_by_name, native_name
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


class UnsortedFibersError(NotDirectError):
    """The storage could be built if the fibers of the source were visited in the order of coordinates."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, needs_order=True)


class Place(NamedTuple):
    """An element's slot of an axis: its number as text, the number of all slots, and the text of that."""

    text: str
    slots: int
    size: str


class Store(NamedTuple):
    """A statement of the last program: it stores a coordinate of the element in its place of an index array.

    `most` is the largest value that may be stored; `unused` that of other places, None if there are none.
    """

    axis: str
    handle: str
    most: int
    unused: int | None


class Appended(NamedTuple):
    """An axis to which the last program appends the elements, which are in its order: `parent` is the place
    of the fiber. There are fewer elements than slots."""

    axis: Axis
    indptr: Indptr | None
    parent: Place


ROOT = Place("0", 1, "1")
"""The place of an element before all axes."""


@dataclass
class AssemblyState:
    """The axes that are built so far.

    Statements of all programs see `p`, `l0`, `l1`, ... of the loop over the elements. `order` is what is
    known about the order of the elements; `requires_order`: a fiber must be sorted.
    """

    source: Storage
    loop: ElementLoop
    target: ConversionTarget
    compile: Compile
    requires_order: bool
    order: ElementOrder
    shape: tuple[int, ...] = field(init=False)
    """The logical shape."""
    sizes: KnownSizes = field(init=False)
    axes: dict[str, Axis] = field(init=False)
    arguments: dict[str, Array | Operand | int] = field(init=False)
    coordinates: dict[str, str] = field(default_factory=dict)
    """The text of an element's coordinate along an axis."""
    lengths: dict[str, str] = field(default_factory=dict)
    """The text of the number of coordinates of an axis."""
    logical: dict[str, int] = field(default_factory=dict)
    """The number of the logical coordinate that is the coordinate along an axis."""
    dimensions: dict[str, frozenset[int]] = field(default_factory=dict)
    """The numbers of the logical coordinates on which the coordinate along an axis depends."""
    statements: list[str] = field(default_factory=list)
    """The statements that bind the slots of the axes so far."""
    starts: list[str] = field(default_factory=list)
    """The statements before the loops."""
    places: dict[str | None, Place] = field(default_factory=lambda: {None: ROOT})
    position: Place = field(default_factory=lambda: ROOT)
    """The place of the element's value, as far as axes are known."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """The index arrays that are complete."""
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The least and the largest element of index arrays, as far as they are known."""
    stores: list[Store] = field(default_factory=list)
    in_own_slot: bool = False
    """Each element has a slot of its own along the axes so far."""
    in_order: bool = False
    """The slots of the values are those of the source."""
    fills_slots: bool = False
    """Each slot of the values has an element."""
    appended: Appended | None = None
    """The axis whose slots the last program counts."""
    in_one_program: bool = False
    """All must be found by the last program."""

    def __post_init__(self) -> None:
        self.shape = self.source.shape
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

    def integer(self, name: str, value: int) -> str:
        """Add an integer argument, and return its name."""
        self.arguments[name] = value
        return name

    def length(self, axis: Axis) -> str:
        """Return the text of the number of coordinates of an axis."""
        known = self.lengths.get(axis.name)
        return self.width(axis.name, self.sizes.value(axis.length)) if known is None else known

    def width(self, name: str, value: int) -> str:
        """Return the text of a width: small ones are constants of the program."""
        return str(value) if value <= LARGEST_CONSTANT else self.integer(f"w_{name}", value)

    def occurring(self, value: str, span: int, size: str) -> Array:
        """Return the values that occur among the elements, in ascending order."""
        marks = np.zeros(span, np.uint8)
        self.query([f"MARK[{value}] = T.uint8(1)"], {"MARK": Operand(marks, size)})
        return np.flatnonzero(marks)

    def numbering(self, name: str, listed: Array, span: int, size: str) -> str:
        """Add the array that has the number of each listed value."""
        numbers = np.zeros(span, np.int32)
        numbers[listed] = np.arange(listed.size, dtype=np.int32)
        self.arguments[name] = Operand(numbers, size)
        return name

    def query(
        self,
        statements: Sequence[str],
        arguments: Mapping[str, Array | Operand | int],
        *,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        """Run a program with statements for each element, and others before and after the loops.

        Raises `NotDirectError` if there may be only one program.
        """
        if self.in_one_program:
            raise NotDirectError("a query needs a program of its own")
        loops = self.loop.around([*self.statements, *statements])
        lines = [*self.starts, *before, *loops, *after]
        run_program(self.compile, lines, {**self.arguments, **arguments})

    def set_place(self, axis: Axis, place: Place) -> None:
        """Bind the slot of an axis."""
        text = place.text
        if not text.isidentifier() and not text.isdigit():
            self.statements.append(f"t_{axis.name} = {text}")
            text = f"t_{axis.name}"
        self.places[axis.name] = place._replace(text=text)

    def set_varied(self, axis: Axis, text: str, count: int, size: str | None = None) -> None:
        size = self.integer(f"N_{axis.name}", count) if size is None else size
        self.set_place(axis, Place(text, count, size))
        self.position = self.places[axis.name]

    def add_offsets(self, indptr: Indptr, lengths: Array, *, most: int | None = None) -> Array:
        """Return the first slots of fibers with known lengths; there are at most `most` slots."""
        total = int(lengths.sum(dtype=np.int64)) if most is None else most
        dtype = native_index_dtype(total)
        offsets = np.empty(lengths.size + 1, dtype)
        offsets[0] = 0
        lengths.cumsum(dtype=dtype, out=offsets[1:])
        return self.set_offsets(indptr, offsets)

    def set_offsets(self, indptr: Indptr, offsets: Array) -> Array:
        self.arrays[indptr.handle] = offsets
        total = int(offsets[-1])
        self.bounds[indptr.handle] = 0, total
        if indptr.nnz is not None and self.sizes.bind(indptr.nnz, total) != total:
            raise NotDirectError("the number of slots differs from the one that is given")
        return offsets

    def pass_offsets(self, axis: Axis, offsets: Array, parent: Place) -> str:
        """Add the array of offsets to the programs, and return the text of an element at `{}`."""
        self.arguments[f"OFFSETS_{axis.name}"] = Operand(offsets, f"{parent.size} + 1")
        return widened(f"OFFSETS_{axis.name}[{{}}]", native_name(offsets.dtype))

    def take(self, name: str, at: Place, starts: Array) -> str:
        """Bind a number that counts the elements at a place from a start, and return its name."""
        cursors = f"CURSOR_{name}"
        # The last fiber begins last.
        most = int(starts[-1]) + self.source.values.size if starts.size else 0
        counting = starts.astype(native_index_dtype(most))
        self.arguments[cursors] = Operand(counting, at.size)
        cast = f"T.{native_name(counting.dtype)}"
        self.statements += [
            f"at_{name} = {at.text}",
            f"r_{name} = {widened(f'{cursors}[at_{name}]', native_name(counting.dtype))}",
            f"{cursors}[at_{name}] = {cast}(r_{name} + 1)",
        ]
        return f"r_{name}"


def offsets_of_ends(ends: Array) -> Array:
    """Return the first slots of fibers from the ends of those that have elements; others have the end 0.

    >>> offsets_of_ends(np.array([0, 2, 0, 3]))
    array([0, 0, 2, 2, 3])
    """
    offsets = np.empty(ends.size + 1, ends.dtype)
    offsets[0] = 0
    np.maximum.accumulate(ends, out=offsets[1:])
    return offsets
