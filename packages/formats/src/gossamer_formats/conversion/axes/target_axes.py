"""The axes of a target that were added so far, and the statements that bind the slots of an element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gossamer_formats.conversion.kernels.loop_nest import Tail
from gossamer_formats.conversion.kernels.run_kernel import run_kernel
from gossamer_formats.conversion.kernels.shared_arguments import (
    SINGLE,
    SharedArguments,
    Size,
)
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.conversion.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_formats.conversion.source.element_loop import ElementLoop
from gossamer_formats.conversion.source.element_order import ElementOrder
from gossamer_formats.conversion.target.conversion_target import ConversionTarget
from gossamer_formats.conversion.target.known_sizes import KnownSizes
from gossamer_formats.storage import ancestors, axes_by_name
from gossamer_ir.core.axis_kinds import Indptr, is_full
from gossamer_ir.core.build import ZERO
from gossamer_ir.nodes import Axis, Expr, FormatDescription, Stmt


class AxisSlot(NamedTuple):
    """An element's slot of an axis, and the number of all slots."""

    slot: Expr
    size: Size


ROOT_SLOT = AxisSlot(ZERO, SINGLE)
"""The slot of an element before all axes."""


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


class Appended(NamedTuple):
    """An axis to which the last kernel appends the elements, which are in its order: `parent` is the slot
    of the fiber. There are fewer elements than slots."""

    axis: Axis
    indptr: Indptr | None
    parent: AxisSlot


class ValueSlots(NamedTuple):
    """Properties of the slots of the values: each element has a slot of its own; the slots are those of
    the source; each slot has an element; the axis whose slots the last kernel counts."""

    are_own: bool = False
    are_of_source: bool = False
    are_filled: bool = False
    appended: Appended | None = None


class LaterSlot(NamedTuple):
    """About the slot of a later element, if the condition holds that there is one."""

    condition: Expr
    slot: Expr


class Requirements(NamedTuple):
    """`order`: fibers must be sorted as the target says. `one_kernel`: all must be found by the last
    kernel."""

    order: bool
    one_kernel: bool


class TargetAxes(msgspec.Struct, eq=False):
    """The axes so far.

    Statements of all kernels see `p`, `l0`, `l1`, ... of the loop over the elements. `order` is what is
    known about the order of the elements.
    """

    source: RecordedStorage
    loop: ElementLoop
    order: ElementOrder
    target: ConversionTarget
    requires: Requirements
    sizes: KnownSizes
    """The sizes that are the same for all tensors of the kind."""
    slot_counts: dict[str, RecordedValue] = {}
    """The sizes that are numbers of slots."""
    coordinates: dict[str, Expr] = {}
    """An element's coordinate along an axis."""
    positions: dict[str, Expr] = {}
    """An element's position in a fiber of an axis, where the axis above it has determined it."""
    lengths: dict[str, Size] = {}
    """The number of coordinates of an axis."""
    logical: dict[str, int] = {}
    """The logical dimension whose coordinate is that along an axis."""
    dimensions: dict[str, frozenset[int]] = {}
    """The logical dimensions on which the coordinate along an axis depends."""
    bindings: list[Stmt] = []
    """The statements that bind the slots of the axes so far."""
    starts: list[Stmt] = []
    """The statements before the loops."""
    axis_slots: dict[str | None, AxisSlot] = msgspec.field(
        default_factory=lambda: {None: ROOT_SLOT}
    )
    value_slot: AxisSlot = ROOT_SLOT
    """The slot of the element's value, as far as axes are known."""
    slots: ValueSlots = msgspec.field(default_factory=ValueSlots)
    later: LaterSlot | None = None
    """The slot of a later element, whose values and coordinates will be stored there."""
    arrays: dict[str, IndexArray] = {}
    stored: list[StoredCoordinate] = []

    @property
    def description(self) -> FormatDescription:
        """The description of the target."""
        return self.target.description

    @property
    def axes(self) -> dict[str, Axis]:
        """The axes of the target by name."""
        return axes_by_name(self.description)

    @property
    def arguments(self) -> SharedArguments:
        """The arguments of all kernels."""
        return self.loop.arguments

    @property
    def recorder(self) -> Recorder:
        """The recorder of calls."""
        return self.loop.arguments.recorder


def length_of(state: TargetAxes, axis: Axis) -> Size:
    """Return the number of coordinates of an axis."""
    known = state.lengths.get(axis.name)
    if known is not None:
        return known
    return state.arguments.constant(f"w_{axis.name}", state.sizes.value(axis.length))


def axes_after(state: TargetAxes, axis: Axis) -> list[Axis]:
    """Return the axes after one in the order of the buffer."""
    names, axes = state.description.buffer.axes, state.axes
    return [axes[name] for name in names[names.index(axis.name) + 1 :]]


def axes_before(state: TargetAxes, axis: Axis) -> list[str]:
    """Return the names of the axes before one in the order of the buffer."""
    names = state.description.buffer.axes
    return list(names[: names.index(axis.name)])


def has_full_ancestors(state: TargetAxes, axis: Axis) -> bool:
    """Return whether the fibers of an axis are those of dense axes, which are there without elements, too."""
    return all(is_full(state.axes[name]) for name in ancestors(state.axes, axis.name))


def run_query(
    state: TargetAxes,
    statements: Sequence[Stmt],
    arguments: Mapping[str, Any],
    *,
    before: Sequence[Stmt] = (),
    after: Sequence[Stmt] = (),
    tail: Tail | None = None,
) -> None:
    """Run a kernel with statements for each element, others before and after the loops, and one after some
    inner loops.

    Raises `NotDirectError` if there may be only one kernel.
    """
    if state.requires.one_kernel:
        raise NotDirectError("a query needs a kernel of its own")
    loops = state.loop.around([*state.bindings, *statements], tail)
    body = [*state.starts, *before, *loops, *after]
    run_kernel(state.recorder, body, {**state.arguments.by_name, **arguments})
