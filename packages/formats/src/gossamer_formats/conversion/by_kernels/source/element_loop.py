"""The loops over the elements of a storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import (
    Tail,
    without_outer_loops,
    wrap_in_nest,
)
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments, Size
from gossamer_formats.conversion.by_kernels.kernels.statements import compare, let, loop, when
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.conversion.by_kernels.source.axis_loops import add_axis
from gossamer_formats.conversion.by_kernels.source.listed_axes import (
    ListedAxes,
    add_contents,
    axes_in_listed_order,
)
from gossamer_formats.conversion.by_kernels.source.loop_order import (
    layout_sizes,
    lexicographic_loops,
)
from gossamer_formats.conversion.by_kernels.source.map_results import bounds_of, in_kernel
from gossamer_formats.conversion.by_kernels.source.solved_axis import (
    SolvedAxis,
    add_solved_axis,
    ascending_axis,
)
from gossamer_formats.conversion.by_kernels.source.source_loops import (
    SourceLoopBuilder,
    axis_of,
    length_in,
    value_index_of,
)
from gossamer_formats.conversion.destination.inverse_map import logical_var
from gossamer_ir.analysis.axes.logical_elements import map_results
from gossamer_ir.core.build import ZERO, index_var, zero_of
from gossamer_ir.nodes import Expr, For, Load, Stmt

VALUES = "S_values"
"""The array of the values of the source."""

VALUE_INDEX = index_var("p")
"""The value index of an element."""

_NOTHING: Mapping[str, RecordedValue] = MappingProxyType({})


class ElementLoop(NamedTuple):
    """A nest that binds, for each element, `p` (its value index) and `l0`, `l1`, ... (its logical
    coordinates, which are less than `d0`, `d1`, ...).
    """

    nest: tuple[Stmt, ...]
    arguments: SharedArguments
    axis_names: tuple[str, ...]
    """The axes of the loops, from the outermost."""
    solved: SolvedAxis | None
    """The axis without a loop, whose coordinate follows from the others."""
    listed: ListedAxes | None
    """The axes with one loop over the contents of an array."""
    is_in_order: bool
    """True if value indices ascend."""
    visits_all: bool
    """True if every value is that of an element."""
    loaded: dict[int, str]
    """The handles of index arrays that have a logical coordinate at `p`, by dimension."""
    size: Size
    """The number of values."""
    value: Expr
    """The value of the element."""
    condition: Expr | None
    """True for the elements that are wanted; None if all are."""
    whole: dict[str, For]
    """As in `SourceLoopBuilder`."""

    @property
    def counts_values(self) -> bool:
        """Value indices of elements are 0, 1, 2, ..."""
        return self.visits_all and self.is_in_order

    def around(self, body: Sequence[Stmt], tail: Tail | None = None) -> tuple[Stmt, ...]:
        """Return the loops around statements, for the elements that are wanted."""
        if tail is not None:
            return self.around_all(body, tail)
        return wrap_in_nest(without_outer_loops(self._wanted_nest, body, self.whole), body)

    def around_all(self, body: Sequence[Stmt], tail: Tail | None) -> tuple[Stmt, ...]:
        """Return all loops of the nest around statements, also those that these do not need."""
        return wrap_in_nest(self._wanted_nest, body, tail)

    @property
    def _wanted_nest(self) -> tuple[Stmt, ...]:
        """The nest for the elements that are wanted."""
        return self.nest if self.condition is None else (*self.nest, when(self.condition, []))


class _Visit(NamedTuple):
    """The axes of the loops, from the outermost, the axis without a loop, and those with a loop over the
    contents of an array."""

    loops: tuple[str, ...]
    solved: SolvedAxis | None = None
    listed: ListedAxes | None = None


def element_loop(
    arguments: SharedArguments,
    storage: RecordedStorage,
    *,
    drops_zeros: bool,
    in_storage_order: bool = False,
    sorted_slots: Mapping[str, RecordedValue] = _NOTHING,
) -> ElementLoop:
    """Return the loops over the elements of a checked storage.

    Value indices ascend if elements are wanted `in_storage_order`. Otherwise loops over dense axes are moved
    outwards, as that over the rows within a block, or replaced by loops over what they list, if the elements
    are sorted by coordinates then.
    `sorted_slots` has the slots of an axis in the order in which they are visited; those of other axes are
    visited in their own order.
    """
    own_order = _Visit(storage.description.buffer.axes)
    visit = own_order if in_storage_order else _sorted_visit(arguments, storage)
    builder = SourceLoopBuilder(storage, arguments, sorted_slots)
    _open_loops(builder, visit)
    value_index, size = value_index_of(builder)
    builder.nest.append(let(VALUE_INDEX.name, value_index))
    _bind_logical(builder, visit.solved)
    value = _value_of(builder, visit.solved, size)
    is_zero = zero_of(storage.description.buffer.dtype)
    return ElementLoop(
        tuple(builder.nest),
        arguments,
        axis_names=visit.loops,
        solved=visit.solved,
        listed=visit.listed,
        is_in_order=not sorted_slots and visit == own_order,
        visits_all=builder.visits_all and not drops_zeros,
        loaded=_loaded_coordinates(builder, value_index),
        size=size,
        value=value,
        condition=compare("ne", value, is_zero) if drops_zeros else None,
        whole=builder.whole,
    )


def _sorted_visit(arguments: SharedArguments, storage: RecordedStorage) -> _Visit:
    """Return the loops that visit the elements sorted by coordinates; those over the axes in their own order
    if no loops do."""
    layout = layout_sizes(storage.description, storage.sizes)
    in_order = lexicographic_loops(storage.description, layout)
    loops = in_order or storage.description.buffer.axes
    solved = ascending_axis(arguments, storage, layout)
    listed = axes_in_listed_order(arguments, storage, layout)
    return _Visit(loops if listed is None else listed.loops, solved, listed)


def _loaded_coordinates(builder: SourceLoopBuilder, value_index: Expr) -> dict[int, str]:
    """Return the handles of the index arrays that have a logical coordinate at each value, by dimension."""
    description = builder.storage.description
    return {
        dimension: builder.at_value_index[name]
        for dimension, result in enumerate(map_results(description))
        if (name := axis_of(description, result)) in builder.at_value_index
        and value_index == builder.slots[name]
    }


def _open_loops(builder: SourceLoopBuilder, visit: _Visit) -> None:
    """Add the loops over the axes, from the outermost."""
    for dimension, length in enumerate(builder.storage.shape):
        builder.arguments.integer(f"d{dimension}", length)
    if visit.listed is not None:
        add_contents(builder, visit.listed)
    solved = visit.solved
    if solved is None:
        for name in visit.loops:
            add_axis(builder, builder.by_name[name])
        return
    end = index_var(f"d{solved.dimension}")
    builder.nest.append(loop(logical_var(solved.dimension).name, ZERO, end, []))
    add_axis(builder, builder.by_name[solved.outer])
    add_solved_axis(builder, solved)


def _value_of(builder: SourceLoopBuilder, solved: SolvedAxis | None, size: Size) -> Expr:
    """Add the array of values, and return the value of an element."""
    dtype = builder.storage.description.buffer.dtype
    indices: tuple[Expr, ...] = (VALUE_INDEX,)
    shape: tuple[Expr, ...] = (size.expr,)
    if solved is not None:
        # Both coordinates are known to be in bounds, but not the value index that is made of them.
        names = solved.outer, solved.axis
        indices = tuple(builder.coordinates[name] for name in names)
        shape = tuple(length_in(builder, builder.by_name[name]).expr for name in names)
    builder.arguments.by_name[VALUES] = ArrayArgument(builder.storage.values, dtype, shape)
    return Load(VALUES, indices, dtype)


def _bind_logical(builder: SourceLoopBuilder, solved: SolvedAxis | None) -> None:
    """Bind the logical coordinates, and skip slots that are beyond the shape."""
    results = {
        dimension: result
        for dimension, result in enumerate(map_results(builder.storage.description))
        if solved is None or dimension != solved.dimension
    }
    for dimension, result in results.items():
        builder.nest.append(let(logical_var(dimension).name, in_kernel(builder, result)))
    for dimension, result in results.items():
        coordinate = logical_var(dimension)
        low, high = bounds_of(builder, result)
        conditions = []
        if low is None or low < 0:
            conditions.append(compare("ge", coordinate, ZERO))
        if high is None or high >= builder.storage.shape[dimension]:
            conditions.append(compare("lt", coordinate, index_var(f"d{dimension}")))
        builder.nest += [when(condition, []) for condition in conditions]
        builder.visits_all &= not conditions
