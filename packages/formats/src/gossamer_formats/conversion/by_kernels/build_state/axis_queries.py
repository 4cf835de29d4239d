"""Queries about the axes of a destination, while its storage is built."""

from __future__ import annotations

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.nodes import Axis, Expr


def coordinate_along(state: BuildState, axis_name: str) -> Expr:
    """Return an element's coordinate along an axis."""
    return state.elements.coordinates[axis_name].value


def logical_dimension(state: BuildState, axis_name: str) -> int | None:
    """Return the logical dimension that has the coordinate along an axis; None if there is none."""
    coordinate = state.elements.coordinates.get(axis_name)
    return None if coordinate is None else coordinate.logical


def length_of_axis(state: BuildState, axis: Axis) -> Size:
    """Return the number of coordinates of an axis."""
    coordinate = state.elements.coordinates.get(axis.name)
    if coordinate is not None and coordinate.length is not None:
        return coordinate.length
    # A small length is a constant of the kernel, whose loops are unrolled.
    return state.arguments.constant(f"w_{axis.name}", state.sizes.value(axis.length))


def axes_after(state: BuildState, axis: Axis) -> list[Axis]:
    """Return the axes after one in the order of the buffer."""
    names = state.description.buffer.axes
    return [state.by_name[name] for name in names[names.index(axis.name) + 1 :]]


def axes_before(state: BuildState, axis: Axis) -> list[str]:
    """Return the names of the axes before one in the order of the buffer."""
    names = state.description.buffer.axes
    return list(names[: names.index(axis.name)])


def has_full_ancestors(state: BuildState, axis: Axis) -> bool:
    """Return whether the fibers of an axis are those of dense axes, which are there without elements, too."""
    return all(is_full(state.by_name[name]) for name in ancestors(state.by_name, axis.name))
