"""The coordinates of an element along the axes of the target: the map of the description, inverted."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gossamer_formats.conversion.axis_coordinates import listed_contents, require_contents
from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError
from gossamer_formats.conversion.index_contents import listed_array
from gossamer_formats.conversion.inverse_map import InverseMap, Solved, inverse_map
from gossamer_ir.analysis.logical_elements import map_results, map_variables
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Axis, Load, Var
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.references import free_vars


def set_coordinates(state: AssemblyState) -> None:
    results, variables = map_results(state.description), map_variables(state.description)
    for name in sorted(free_vars(*results) - set(variables)):
        state.sizes.require(name)
    inverse = inverse_map(state.description, state.sizes.known, state.source.shape)
    require_contents(state.target, inverse)
    if not inverse.reaches_all:
        raise NotDirectError("the map may not reach all elements")
    for variable, solved in inverse.coordinates.items():
        name = state.description.buffer.axes[variables.index(variable)]
        if solved.extent is None:
            raise NotDirectError("a coordinate is not bounded")
        length = state.axes[name].length
        if state.sizes.bind(length, solved.extent) < solved.extent:
            raise NotDirectError("a coordinate may be outside of its axis")
        _set_coordinate(state, name, solved)
    _set_contents(state, inverse)


def _set_coordinate(state: AssemblyState, name: str, solved: Solved) -> None:
    state.coordinates[name] = print_expr(solved.value)
    if isinstance(solved.value, Var):
        state.logical[name] = int(solved.value.name.removeprefix("l"))


def _set_contents(state: AssemblyState, inverse: InverseMap) -> None:
    """Number the contents of index arrays: the coordinates of the axes that only index these."""
    names = dict(zip(map_variables(state.description), state.description.buffer.axes, strict=True))
    for load, solved in inverse.contents.items():
        indexing = [names[index.name] for index in load.indices if isinstance(index, Var)]
        if len(indexing) < len(load.indices) or any(name in state.coordinates for name in indexing):
            raise NotDirectError("an index array is indexed by a known coordinate")
        _number_contents(state, load, solved, [state.axes[name] for name in indexing])


def _number_contents(state: AssemblyState, load: Load, solved: Solved, axes: list[Axis]) -> None:
    low, span = _range(solved, state.source.shape)
    state.require_table(span)
    value = f"({print_expr(solved.value)}) - {low}" if low else print_expr(solved.value)
    if load.buffer in state.target.orders:
        counts = None
        if solved.extent is not None:
            counts = np.zeros(span, np.int64)
            state.query([f"COUNT[{value}] = COUNT[{value}] + 1"], {"COUNT": counts})
        listed = listed_contents(state.target, load.buffer, counts)
    else:
        listed = state.occurring(value, span) + low
    numbers = state.numbering(f"NUMBER_{load.buffer}", listed - low, span)
    state.statements.append(f"k_{load.buffer} = T.int64({numbers}[{value}])")
    _set_digits(state, axes, f"k_{load.buffer}", listed.size)
    # A value that no coordinate has marks unused places, where the contents are a logical coordinate.
    is_coordinate = isinstance(solved.value, Var) and solved.extent is not None
    unused = solved.extent if is_coordinate and solved.extent is not None else 0
    buffer = next(array for array in state.description.index_arrays if array.name == load.buffer)
    shape = [state.sizes.value(size) for size in buffer.shape]
    state.arrays[buffer.handle or buffer.name] = listed_array(
        state.description, load.buffer, listed, size=prod(shape), unused=unused
    )


def _set_digits(state: AssemblyState, axes: Sequence[Axis], number: str, total: int) -> None:
    """Set the coordinates of axes, of which the last varies fastest, to the digits of a number."""
    for axis in reversed(axes[1:]):
        size = state.sizes.value(axis.length)
        state.coordinates[axis.name] = f"{number} % {size}"
        number, total = f"{number} // {size}", -(-total // size)
    if state.sizes.bind(axes[0].length, total) < total:
        raise NotDirectError("there are more contents than places")
    state.coordinates[axes[0].name] = number


def _range(solved: Solved, shape: Sequence[int]) -> tuple[int, int]:
    """Return the least value of an expression of the logical coordinates, and the number of values."""
    form = affine_of(solved.value)
    low = high = form.constant
    for atom, coefficient in form.terms.items():
        if not isinstance(atom, Var):
            raise NotDirectError("the contents of an index array are not affine")
        most = coefficient * max(shape[int(atom.name.removeprefix("l"))] - 1, 0)
        low, high = low + min(most, 0), high + max(most, 0)
    return low, high - low + 1
