"""The storage of a destination after some of its axes: the slots, arrays and facts that are known by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.nodes import Axis


class IndexArray(NamedTuple):
    """An index array that is complete: its dtype, and its largest element, if that is known; the
    least one is 0 then."""

    array: RecordedValue
    dtype: str
    largest: int | RecordedValue | None = None


class StoredCoordinate(NamedTuple):
    """A coordinate that the last kernel stores in the element's slot of an index array.

    `largest` is the largest one that may be stored; `unused` is stored in the other slots, None if there are
    none.
    """

    axis: str
    handle: str
    largest: int
    unused: int | None


class AppendedAxis(NamedTuple):
    """An axis to which the last kernel appends the elements, which are in its order: `parent` is the slot
    of the fiber. There are fewer elements than slots."""

    axis: Axis
    indptr: Indptr | None
    parent: AxisSlot


class ValueSlots(NamedTuple):
    """Properties of the slots of the values: each element has a slot of its own; the slots are those of
    the source; each slot has an element; the axis whose slots the last kernel counts; slots are in an array,
    each once."""

    are_own: bool = False
    are_of_source: bool = False
    are_filled: bool = False
    appended: AppendedAxis | None = None
    are_listed: bool = False

    def extend(self, more: ValueSlots) -> ValueSlots:
        """Return the slots with the properties of both."""
        return ValueSlots(
            self.are_own or more.are_own,
            self.are_of_source or more.are_of_source,
            self.are_filled or more.are_filled,
            self.appended or more.appended,
            self.are_listed or more.are_listed,
        )


class BuiltStorage(NamedTuple):
    """The index arrays that are complete, those that the last kernel stores, and the sizes that count
    slots."""

    arrays: Mapping[str, IndexArray] = {}
    stored: tuple[StoredCoordinate, ...] = ()
    slot_counts: Mapping[str, RecordedValue] = {}
    slots: ValueSlots = ValueSlots()

    def extend(self, more: BuiltStorage) -> BuiltStorage:
        """Return the storage with more arrays."""
        return BuiltStorage(
            {**self.arrays, **more.arrays},
            (*self.stored, *more.stored),
            # A size that two axes share is the count of the outer one.
            {**more.slot_counts, **self.slot_counts},
            self.slots.extend(more.slots),
        )
