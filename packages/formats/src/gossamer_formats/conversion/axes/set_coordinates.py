"""The coordinates of an element along the axes of the target: the map of the description, inverted."""

from __future__ import annotations

from gossamer_formats.conversion.axes.set_contents import range_of, set_contents
from gossamer_formats.conversion.axes.target_axes import TargetAxes
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.maps.contents import require_contents
from gossamer_formats.conversion.maps.inverse_map import (
    dimension_of,
    dimensions_of,
    inverse_map,
    require_map_sizes,
)
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_ir.analysis.logical_elements import map_variables
from gossamer_ir.core.build import ceildiv, index_var
from gossamer_ir.nodes import Binary, Const, Expr, Var


def set_coordinates(state: TargetAxes) -> None:
    """Find the coordinates of an element along all axes that occur in the map."""
    description, axes = state.description, state.axes
    require_map_sizes(description, state.sizes)
    inverse = inverse_map(description, state.sizes.known, state.source.shape)
    require_contents(state.target, inverse)
    if not inverse.reaches_all:
        raise NotDirectError("the map may not reach all elements")
    names = dict(zip(map_variables(description), description.buffer.axes, strict=True))
    for variable, solved in inverse.coordinates.items():
        name = names[variable]
        if solved.extent is None:
            raise NotDirectError("a coordinate is not bounded")
        length = state.sizes.bind(axes[name].length, solved.extent)
        if length < solved.extent:
            raise NotDirectError("a coordinate may be outside of its axis")
        state.coordinates[name] = solved.value
        state.lengths[name] = extent_of(state, name, solved.value, length)
        if isinstance(solved.value, Var):
            state.logical[name] = dimension_of(solved.value)
        state.dimensions[name] = dimensions_of(solved.value)
    for load, solved in inverse.contents.items():
        low, span = range_of(solved, state.source.shape)
        size = extent_of(state, load.buffer, solved.value, span)
        set_contents(state, load, solved, size, low)


def extent_of(state: TargetAxes, name: str, value: Expr, extent: int) -> Size:
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
