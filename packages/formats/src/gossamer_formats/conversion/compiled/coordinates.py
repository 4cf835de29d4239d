"""The coordinates of an element along the axes of the target: the map of the description, inverted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.axis_coordinates import listed_contents, require_contents
from gossamer_formats.conversion.compiled.assembly_state import AssemblyState, NotDirectError
from gossamer_formats.conversion.compiled.program import Operand
from gossamer_formats.conversion.index_contents import listed_array
from gossamer_formats.conversion.inverse_map import InverseMap, Solved, inverse_map
from gossamer_formats.conversion.known_sizes import KnownSizes
from gossamer_ir.analysis.logical_elements import map_results, map_variables
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Axis, Binary, Const, Expr, FormatDescription, Load, Var
from gossamer_ir.script import print_expr
from gossamer_ir.traversal.references import free_vars


class _Inverse(NamedTuple):
    """The inverse of a map, and for each axis with a known coordinate its name, the coordinate and its
    text."""

    map: InverseMap
    coordinates: tuple[tuple[str, Solved, str], ...]


@lru_cache(maxsize=512)
def _inverse(
    description: FormatDescription, sizes: tuple[tuple[str, int], ...], shape: tuple[int, ...]
) -> _Inverse:
    results, variables = map_results(description), map_variables(description)
    known = KnownSizes(description, dict(sizes))
    for name in sorted(free_vars(*results) - set(variables)):
        known.require(name)
    inverse = inverse_map(description, known.known, shape)
    names = dict(zip(variables, description.buffer.axes, strict=True))
    return _Inverse(
        inverse,
        tuple(
            (names[variable], solved, print_expr(solved.value))
            for variable, solved in inverse.coordinates.items()
        ),
    )


def set_coordinates(state: AssemblyState) -> None:
    """Find the coordinates of an element along all axes that occur in the map."""
    inverse = _inverse(state.description, tuple(state.sizes.known.items()), state.shape)
    require_contents(state.target, inverse.map)
    if not inverse.map.reaches_all:
        raise NotDirectError("the map may not reach all elements")
    for name, solved, text in inverse.coordinates:
        if solved.extent is None:
            raise NotDirectError("a coordinate is not bounded")
        length = state.sizes.bind(state.axes[name].length, solved.extent)
        if length < solved.extent:
            raise NotDirectError("a coordinate may be outside of its axis")
        state.coordinates[name] = text
        state.lengths[name] = extent_text(state, name, solved.value, length)
        if isinstance(solved.value, Var):
            state.logical[name] = _dimension(solved.value)
        state.dimensions[name] = _dimensions(solved.value)
    _set_contents(state, inverse.map)


def extent_text(state: AssemblyState, name: str, value: Expr, extent: int) -> str:
    """Return the text of the number of values of an expression of logical coordinates, so that programs for
    other shapes are the same."""
    match value:
        case Var() if extent == state.shape[_dimension(value)]:
            return f"d{_dimension(value)}"
        case Binary(op="floordiv", lhs=Var() as number, rhs=Const() as divisor):
            shape, size = state.shape[_dimension(number)], int(divisor.text)
            if extent == -(-shape // size):
                return f"((d{_dimension(number)} + {size - 1}) // {size})"
    return state.width(name, extent)


def _dimension(variable: Var) -> int:
    return int(variable.name.removeprefix("l"))


@lru_cache(maxsize=512)
def _dimensions(value: Expr) -> frozenset[int]:
    """Return the logical dimensions on which an expression depends."""
    return frozenset(int(name.removeprefix("l")) for name in free_vars(value))


def _set_contents(state: AssemblyState, inverse: InverseMap) -> None:
    """Number the contents of index arrays: the coordinates of the axes that only index these."""
    names = dict(zip(map_variables(state.description), state.description.buffer.axes, strict=True))
    for load, solved in inverse.contents.items():
        indexing = [names[index.name] for index in load.indices if isinstance(index, Var)]
        if len(indexing) < len(load.indices) or any(name in state.coordinates for name in indexing):
            raise NotDirectError("an index array is indexed by a known coordinate")
        _number_contents(state, load, solved, [state.axes[name] for name in indexing])
        state.dimensions |= dict.fromkeys(indexing, _dimensions(solved.value))


def _number_contents(state: AssemblyState, load: Load, solved: Solved, axes: list[Axis]) -> None:
    low, span = _range(solved, state.shape)
    state.require_table(span)
    size = extent_text(state, load.buffer, solved.value, span)
    value = print_expr(solved.value)
    if low:
        value = f"({value}) - {state.integer(f'low_{load.buffer}', low)}"
    if load.buffer in state.target.orders:
        counts = None
        if solved.extent is not None:
            counts = np.zeros(span, np.int64)
            statements = [f"at_ = {value}", "COUNT[at_] = COUNT[at_] + 1"]
            state.query(statements, {"COUNT": Operand(counts, size)})
        listed = listed_contents(state.target, load.buffer, counts)
    else:
        listed = state.occurring(value, span, size) + low
    numbers = state.numbering(f"NUMBER_{load.buffer}", listed - low, span, size)
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
        length = state.sizes.value(axis.length)
        size = state.width(axis.name, length)
        state.coordinates[axis.name] = f"{number} % {size}"
        number, total = f"{number} // {size}", -(-total // length)
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
        most = coefficient * max(shape[_dimension(atom)] - 1, 0)
        low, high = low + min(most, 0), high + max(most, 0)
    return low, high - low + 1
