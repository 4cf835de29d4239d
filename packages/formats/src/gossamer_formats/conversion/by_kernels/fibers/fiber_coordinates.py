"""The distinct coordinates in each fiber of an axis, whose slots are shared by elements."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.fibers.gathered_fibers import gathered_fibers
from gossamer_formats.conversion.by_kernels.fibers.marked_fibers import MarkedFibers, marked_fibers
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_ir.nodes import Axis


def fiber_coordinates(
    state: BuildState, axis: Axis, parent: AxisSlot, *, are_sorted: bool
) -> MarkedFibers:
    """Return the distinct coordinates along an axis in each fiber.

    Raises `NotDirectError` (`needs_order`) unless the elements are known to be distinct.
    """
    marked = marked_fibers(state, axis, parent, lists_slots=not are_sorted)
    if marked is not None:
        return marked
    # Sorting is needed anyway, to find repeated elements, and may bring those of a fiber together.
    if not state.order.are_distinct:
        raise NotDirectError("elements of a fiber are not together", needs_order=True)
    return gathered_fibers(state, axis, parent, are_sorted=are_sorted)
