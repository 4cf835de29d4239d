"""The coordinates of an element along the axes of the destination: the map of the description, inverted."""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState, with_bindings
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisCoordinate,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.coordinates.array_contents import (
    range_of,
    with_contents,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.destination.contents import require_contents
from gossamer_formats.conversion.destination.inverse_map import (
    Solved,
    dimension_of,
    dimensions_of,
    inverse_map,
    require_map_sizes,
)
from gossamer_ir.analysis.axes.logical_elements import map_vars
from gossamer_ir.core.build import ceildiv, index_var
from gossamer_ir.nodes import Axis, Binary, Const, Expr, Var


def with_coordinates(state: BuildState) -> BuildState:
    """Return the axes with an element's coordinates along all of them that occur in the map."""
    description, shape = state.description, state.source.shape
    require_map_sizes(description, state.sizes)
    inverse = inverse_map(description, state.sizes.known, shape)
    require_contents(state.destination, inverse)
    # NumPy evaluates the map, and names an element that it does not reach.
    if not inverse.reaches_all:
        raise NotDirectError("the map may not reach all elements")
    names = dict(zip(map_vars(description), description.buffer.axes, strict=True))
    coordinates = {
        names[var]: _coordinate(state, state.by_name[names[var]], solved)
        for var, solved in inverse.coordinates.items()
    }
    state = with_bindings(state, ElementBindings(coordinates))
    for load, solved in inverse.contents.items():
        low, span = range_of(solved, shape)
        size = _extent(state, load.buffer, value=solved.value, extent=span)
        state = with_contents(state, load, solved=solved, size=size, low=low)
    return state


def _coordinate(state: BuildState, axis: Axis, solved: Solved) -> AxisCoordinate:
    """Return the coordinate along an axis, whose length must be known or follow from it."""
    # Kernels do not check coordinates: without a bound they might store outside of an array.
    if solved.extent is None:
        raise NotDirectError("a coordinate is not bounded")
    length = state.sizes.bind(axis.length, solved.extent)
    if length < solved.extent:
        raise NotDirectError("a coordinate may be outside of its axis")
    return AxisCoordinate(
        solved.value,
        length=_extent(state, axis.name, value=solved.value, extent=length),
        logical=dimension_of(solved.value) if isinstance(solved.value, Var) else None,
        dimensions=dimensions_of(solved.value),
    )


def _extent(state: BuildState, name: str, *, value: Expr, extent: int) -> Size:
    """Return the number of values of an expression of logical coordinates, as an expression of the shape, so
    that kernels for other shapes are the same."""
    shape = state.source.shape
    match value:
        case Var() if extent == shape[dimension_of(value)]:
            return Size(index_var(f"d{dimension_of(value)}"), extent)
        case Binary(op="floordiv", lhs=Var() as coordinate, rhs=Const() as divisor):
            size = int(divisor.text)
            if extent == -(-shape[dimension_of(coordinate)] // size):
                return Size(ceildiv(index_var(f"d{dimension_of(coordinate)}"), size), extent)
    return state.arguments.constant(f"w_{name}", extent)
