"""Stores in loops of their own, after a kernel that has found the slots of all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot, LaterSlot
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.statements import let
from gossamer_formats.conversion.by_kernels.slots.listed_slots import (
    complete_slots,
    later_listed_slot,
    load_slot,
    new_slots,
    store_slot,
)
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Expr, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_read, buffers_written
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars

SLOTS = "SLOTS"
"""The array of the slots of elements."""

SLOT = index_var("slot")
"""The slot of an element in the kernel that stores."""


class FoundSlots(NamedTuple):
    """The array of slots, and the slot of a later element, if the kernel should fetch its lines."""

    array: ArrayArgument
    later: LaterSlot | None


def is_separable(state: BuildState, slots: Sequence[AxisSlot], values: Sequence[Expr]) -> bool:
    """Return whether values should be stored after all slots were found, for several threads: they are
    stored in one slot, which is known for each value of the source, and do not depend on how it was found.
    """
    value_slots, elements = state.storage.slots, state.elements
    if state.requirements.threads == 1 or state.requirements.needs_one_kernel:
        return False
    # Slots of the source, and those in an array, are stored in by independent iterations as they are.
    if value_slots.are_of_source or value_slots.are_listed or not state.loop.visits_all:
        return False
    slot_stmts = (*elements.starts, *elements.stmts)
    is_free = bound_vars(slot_stmts).isdisjoint(free_vars(*values))
    reads = buffers_read(*values)
    return (
        len({value_slot.slot for value_slot in slots}) == 1
        and is_free
        and reads.isdisjoint(buffers_written(slot_stmts))
    )


def find_slots(state: BuildState, slot: AxisSlot) -> FoundSlots:
    """Run the kernel that finds the slots of all elements."""
    slots = new_slots(state, slot.size.value)
    run_query(state, [store_slot(SLOTS, slot.slot, slots)], {SLOTS: slots})
    later = None
    if state.elements.later is not None:
        later = later_listed_slot(state, SLOTS, slots)
    return FoundSlots(complete_slots(SLOTS, slots), later)


def run_stores(
    state: BuildState,
    slots: ArrayArgument,
    stmts: Sequence[Stmt],
    arguments: Mapping[str, Any],
) -> None:
    """Run the kernel that stores values of elements in the slots that were found."""
    body = state.loop.around([let(SLOT.name, load_slot(SLOTS, slots)), *stmts])
    shared = state.arguments.by_name
    run_kernel(state.recorder, body, {**shared, **arguments, SLOTS: slots})
