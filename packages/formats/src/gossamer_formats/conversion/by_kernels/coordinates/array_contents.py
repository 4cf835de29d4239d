"""The contents of index arrays of the map: their ranks are coordinates of the axes that only index them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState, with_bindings
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisCoordinate,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.coordinates.ranked_contents import (
    ArrayContents,
    rank_in_groups,
    ranked_contents,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import let
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.destination.contents import indexing_axes
from gossamer_formats.conversion.destination.inverse_map import Solved, dimension_of, dimensions_of
from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import ZERO, binary, floordiv, index_var, sub
from gossamer_ir.nodes import Axis, Expr, Load, Var


def with_contents(
    state: BuildState, load: Load, *, solved: Solved, size: Size, low: int
) -> BuildState:
    """Rank the contents of an index array, which are integers from `low`, and return the axes with the
    coordinates that index them.

    Where some of these are known, as those of the blocks that choose columns, the contents are ranked for
    each of them.
    """
    indexing = indexing_axes(state.description, load)
    known_names = [name for name in indexing if name in state.elements.coordinates]
    is_prefix = len(known_names) < len(indexing) and known_names == [*indexing[: len(known_names)]]
    if not is_prefix or (known_names and load.buffer in state.destination.orders):
        raise NotDirectError("an index array is not indexed by known coordinates first")
    value = solved.value
    if low:
        value = sub(value, state.arguments.integer(f"low_{load.buffer}", low).expr)
    contents = ArrayContents(load.buffer, solved, value, size, low)
    ranked = (
        rank_in_groups(state, contents, known_names)
        if known_names
        else ranked_contents(state, contents)
    )
    rank = index_var(f"rank_{load.buffer}")
    unknown = [state.by_name[name] for name in indexing[len(known_names) :]]
    coordinates = _digits(state, unknown, rank, ranked.total)
    dimensions = dimensions_of(solved.value).union(
        *(state.elements.coordinates[name].dimensions for name in known_names)
    )
    elements = ElementBindings(
        {
            name: AxisCoordinate(coordinate, dimensions=dimensions)
            for name, coordinate in coordinates.items()
        },
        stmts=(let(rank.name, ranked.rank),),
    )
    buffer = next(array for array in state.description.index_arrays if array.name == load.buffer)
    entries = prod(state.sizes.value(size) for size in buffer.shape)
    array = IndexArray(ranked.array(entries), "int64")
    return with_bindings(state, elements, BuiltStorage({buffer.handle or buffer.name: array}))


def _digits(
    state: BuildState, indexing: Sequence[Axis], value: Expr, total: int
) -> dict[str, Expr]:
    """Return the digits of a value: the coordinates along axes, of which the last varies fastest."""
    digits: dict[str, Expr] = {}
    for axis in reversed(indexing[1:]):
        length = state.sizes.value(axis.length)
        if length == 1:
            digits[axis.name] = ZERO
            continue
        size = state.arguments.constant(f"w_{axis.name}", length)
        digits[axis.name] = binary("floormod", value, size.expr)
        value, total = floordiv(value, size.expr), -(-total // length)
    if state.sizes.bind(indexing[0].length, total) < total:
        raise NotDirectError("there are more contents than entries")
    digits[indexing[0].name] = value
    return digits


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
