"""The state of building the storage of a destination, to which each axis adds its result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.build_state.built_storage import BuiltStorage
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    ROOT_SLOT,
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.kernels.statements import let
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.source.element_loop import ElementLoop
from gossamer_formats.conversion.by_kernels.source.element_order import ElementOrder
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_ir.core.axis_kinds import Indices, Indptr
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Axis, Const, FormatDescription, Var
from gossamer_machine.machine import Machine
from gossamer_support.items_by_name import items_by_name


class Requirements(NamedTuple):
    """The requirements of a conversion on its kernels.

    * `requires_order`: fibers must be sorted as the destination says
    * `needs_one_kernel`: the last kernel must compute everything
    * `threads`: the number of threads for which kernels are written
    * `machine`: the machine that runs them
    """

    requires_order: bool
    needs_one_kernel: bool
    threads: int
    machine: Machine


class BuildState(NamedTuple):
    """The storage of a destination after some of its axes: the slots of an element by axis, and the slot of
    its value.

    Statements of all kernels see `p`, `l0`, `l1`, ... of the loop over the elements. `order` is what is
    known about the order of the elements. `sizes` are the same for all tensors of the kind.
    """

    source: RecordedStorage
    loop: ElementLoop
    order: ElementOrder
    destination: Destination
    requirements: Requirements
    sizes: KnownSizes
    axis_slots: Mapping[str | None, AxisSlot] = MappingProxyType({None: ROOT_SLOT})
    value_slot: AxisSlot = ROOT_SLOT
    elements: ElementBindings = ElementBindings()
    storage: BuiltStorage = BuiltStorage()

    @property
    def description(self) -> FormatDescription:
        """The description of the destination."""
        return self.destination.description

    @property
    def by_name(self) -> dict[str, Axis]:
        """The axes of the destination by name."""
        return items_by_name(self.description.axes)

    @property
    def arguments(self) -> SharedArguments:
        """The arguments of all kernels."""
        return self.loop.arguments

    @property
    def recorder(self) -> Recorder:
        """The recorder of calls."""
        return self.loop.arguments.recorder


class CompressedAxis(NamedTuple):
    """An axis that stores coordinates: its arrays, and the slot of its parent, which is the fiber."""

    axis: Axis
    indptr: Indptr | None
    indices: Indices
    parent: AxisSlot

    @property
    def name(self) -> str:
        """The name of the axis."""
        return self.axis.name


class AxisResult(NamedTuple):
    """An element's slot of an axis, and what the axis adds to the bindings of elements and to the storage.

    `value_slot` is the slot of the element's value, as far as axes are known; None if it is that of the axis.
    """

    slot: AxisSlot
    elements: ElementBindings = ElementBindings()
    storage: BuiltStorage = BuiltStorage()
    value_slot: AxisSlot | None = None


def with_bindings(
    state: BuildState,
    elements: ElementBindings,
    storage: BuiltStorage | None = None,
) -> BuildState:
    """Return the state with more bindings of elements, and with more of the storage."""
    extended = state.storage if storage is None else state.storage.extend(storage)
    return state._replace(elements=state.elements.extend(elements), storage=extended)


def with_axis(state: BuildState, axis: Axis, result: AxisResult) -> BuildState:
    """Return the state after one more axis, whose slot is bound for the kernels of later axes and the last
    one."""
    slot, elements = result.slot, result.elements
    # The kernels of later axes read the slot, some of them often: an expression is evaluated once.
    if not isinstance(slot.slot, Var | Const):
        name = index_var(f"t_{axis.name}")
        elements = elements.extend(ElementBindings(stmts=(let(name.name, slot.slot),)))
        slot = AxisSlot(name, slot.size)
    return with_bindings(state, elements, result.storage)._replace(
        axis_slots={**state.axis_slots, axis.name: slot},
        value_slot=slot if result.value_slot is None else result.value_slot,
    )
