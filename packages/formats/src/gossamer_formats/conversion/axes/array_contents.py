"""The contents of index arrays of the map: their ranks are coordinates of the axes that only index them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.axes.built_storage import BuiltStorage, IndexArray
from gossamer_formats.conversion.axes.element_bindings import AxisCoordinate, ElementBindings
from gossamer_formats.conversion.axes.run_query import run_query
from gossamer_formats.conversion.axes.tables import occurring, rank_in_table, require_table
from gossamer_formats.conversion.axes.target_axes import TargetAxes, with_bindings
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import increment, let
from gossamer_formats.conversion.maps.contents import (
    indexing_axes,
    listed_array,
    listed_contents,
    unused_content,
)
from gossamer_formats.conversion.maps.inverse_map import Solved, dimension_of, dimensions_of
from gossamer_formats.conversion.recording.array_scalars import (
    size_of,
)
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.storage import Array
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ZERO, binary, floordiv, index_var, sub
from gossamer_ir.nodes import Axis, Expr, FormatDescription, Load, Var


def with_contents(
    axes: TargetAxes, load: Load, *, solved: Solved, size: Size, low: int
) -> TargetAxes:
    """Rank the contents of an index array, which are integers from `low`, and return the axes with the
    coordinates that index them."""
    indexing = indexing_axes(axes.description, load)
    if any(name in axes.elements.coordinates for name in indexing):
        raise NotDirectError("an index array is indexed by a known coordinate")
    require_table(axes, size.value)
    value = solved.value
    if low:
        value = sub(value, axes.arguments.integer(f"low_{load.buffer}", low).expr)
    contents = _Contents(load.buffer, solved, value, size, low)
    listed = _listed(axes, contents)
    from_low = axes.recorder.compute(np.subtract, listed, low) if low else listed
    rank = index_var(f"rank_{load.buffer}")
    found = rank_in_table(axes, load.buffer, value=value, listed=from_low, size=size)
    total = axes.recorder.decide(size_of, listed)
    coordinates = _digits(axes, [axes.by_name[name] for name in indexing], rank, total)
    dimensions = dimensions_of(solved.value)
    elements = ElementBindings(
        {name: AxisCoordinate(each, dimensions=dimensions) for name, each in coordinates.items()},
        statements=(let(rank.name, found),),
    )
    return with_bindings(axes, elements, _array_of(axes, contents, listed))


class _Contents(NamedTuple):
    """The contents of an index array of the map: `value` is that of an element, from 0 to `size` - 1."""

    buffer: str
    solved: Solved
    value: Expr
    size: Size
    low: int


def _listed(axes: TargetAxes, contents: _Contents) -> RecordedValue:
    """Return the contents in the order of the format, or those that occur in ascending order."""
    recorder, (name, solved, value, size, low) = axes.recorder, contents
    if name not in axes.target.orders:
        found = occurring(axes, value, size)
        return recorder.compute(np.add, found, low) if low else found
    counts = None
    if solved.extent is not None:
        counts = recorder.compute(np.zeros, size.value, np.int64)
        at = index_var("at_")
        counted = {"COUNT": ArrayArgument(counts, "int64", (size.expr,))}
        run_query(axes, [let(at.name, value), increment("COUNT", at, "int64")], counted)
    return recorder.compute(listed_contents, axes.target, name, counts)


def _array_of(axes: TargetAxes, contents: _Contents, listed: RecordedValue) -> BuiltStorage:
    """Return the index array with its contents."""
    name, description = contents.buffer, axes.description
    buffer = next(array for array in description.index_arrays if array.name == name)
    count = prod(axes.sizes.value(size) for size in buffer.shape)
    unused = unused_content(contents.solved)
    array = axes.recorder.compute(_array, description, name, listed, count, unused)
    return BuiltStorage({buffer.handle or buffer.name: IndexArray(array, "int64")})


def _array(
    description: FormatDescription, buffer: str, listed: Array, size: int, unused: int
) -> Array:
    return listed_array(description, buffer, listed, size=size, unused=unused)


def _digits(axes: TargetAxes, indexing: Sequence[Axis], value: Expr, total: int) -> dict[str, Expr]:
    """Return the digits of a value: the coordinates along axes, of which the last varies fastest."""
    found: dict[str, Expr] = {}
    for axis in reversed(indexing[1:]):
        length = axes.sizes.value(axis.length)
        if length == 1:
            found[axis.name] = ZERO
            continue
        size = axes.arguments.constant(f"w_{axis.name}", length)
        found[axis.name] = binary("floormod", value, size.expr)
        value, total = floordiv(value, size.expr), -(-total // length)
    if axes.sizes.bind(indexing[0].length, total) < total:
        raise NotDirectError("there are more contents than entries")
    found[indexing[0].name] = value
    return found


def range_of(solved: Solved, shape: Sequence[int]) -> tuple[int, int]:
    """Return the least value of an expression of the logical coordinates, and the number of values."""
    if solved.extent is not None:
        return 0, solved.extent
    form = affine_of(solved.value)
    low = high = form.constant
    for atom, coefficient in form.terms.items():
        if not isinstance(atom, Var):
            raise NotDirectError("the contents of an index array are not affine")
        most = coefficient * max(shape[dimension_of(atom)] - 1, 0)
        low, high = low + min(most, 0), high + max(most, 0)
    return low, high - low + 1
