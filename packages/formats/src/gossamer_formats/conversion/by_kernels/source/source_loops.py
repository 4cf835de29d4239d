"""The loops over the elements of a source while they are built: slots, coordinates and sizes of its axes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import (
    SINGLE,
    SharedArguments,
    Size,
)
from gossamer_formats.conversion.by_kernels.kernels.statements import digits
from gossamer_formats.conversion.by_kernels.recording.array_scalars import size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import RecordedStorage
from gossamer_formats.description_sizes import evaluate
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, width_of
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.nodes import Axis, Expr, Fact, For, FormatDescription, Stmt, Var
from gossamer_support.items_by_name import items_by_name


class SourceLoopBuilder(msgspec.Struct, eq=False):
    """The loops so far: the state of one call of `element_loop`, which adds one axis after the other."""

    storage: RecordedStorage
    arguments: SharedArguments
    sorted_slots: Mapping[str, RecordedValue]
    nest: list[Stmt] = []
    """The statements around the next one."""
    slots: dict[str | None, Expr] = msgspec.field(default_factory=lambda: {None: ZERO})
    """The slot of each axis."""
    coordinates: dict[str, Expr] = {}
    """The coordinate along each axis."""
    counts: dict[str | None, Size] = msgspec.field(default_factory=lambda: {None: SINGLE})
    """The number of slots of all fibers of each axis."""
    at_value_index: dict[str, str] = {}
    """The handles of arrays that have the coordinates of an axis at its slots."""
    visits_all: bool = True
    whole: dict[str, For] = {}
    """For the variable of a loop, that over the slots of all fibers, which are visited in
    the same order."""
    contents: dict[str, int] = {}
    """The number of contents of each index array with a loop over them."""

    @property
    def by_name(self) -> dict[str, Axis]:
        """The axes by name."""
        return items_by_name(self.storage.description.axes)


def content_of(array: str) -> Var:
    """Return the variable of the loop over the contents of an index array.

    >>> content_of("ROWS").name
    'content_ROWS'
    """
    return index_var(f"content_{array}")


def add_array(
    builder: SourceLoopBuilder, handle: str, dtype: str, size: Expr, facts: tuple[Fact, ...] = ()
) -> str:
    """Add an array of the source, and return its name in kernels."""
    name = f"S_{handle}"
    builder.arguments.array(name, builder.storage.arrays[handle], dtype, size, facts)
    return name


def width_in(builder: SourceLoopBuilder, axis: Axis) -> Size:
    """Return the number of slots of a fiber of fixed width."""
    indices, width, name = indices_of(axis), width_of(axis), f"s_{axis.name}"
    if indices is None:
        return length_in(builder, axis)
    # A list, as the rows of COO, has no size of its own: its array says how long it is.
    if isinstance(width, Var) and width.name not in builder.storage.sizes:
        count = builder.arguments.recorder.compute(size_of, builder.storage.arrays[indices.handle])
        return builder.arguments.integer(name, count)
    return builder.arguments.constant(name, evaluate(width, builder.storage.sizes))


def length_in(builder: SourceLoopBuilder, axis: Axis) -> Size:
    """Return the number of coordinates of an axis."""
    length = evaluate(axis.length, builder.storage.sizes)
    if length == 1:
        return SINGLE
    description = builder.storage.description
    for dimension, result in enumerate(map_results(description)):
        if axis_of(description, result) == axis.name and length == builder.storage.shape[dimension]:
            return Size(index_var(f"d{dimension}"), length)
    return builder.arguments.constant(f"n_{axis.name}", length)


def axis_of(description: FormatDescription, result: Expr) -> str | None:
    """Return the name of the axis whose coordinate is a result of the map."""
    if not isinstance(result, Var):
        return None
    dimension = map_vars(description).index(result.name)
    return description.buffer.axes[dimension]


def value_index_of(builder: SourceLoopBuilder) -> tuple[Expr, Size]:
    """Return the index of the value, and the number of values."""
    value_index: Expr = ZERO
    count = SINGLE
    arguments, buffer = builder.arguments, builder.storage.description.buffer
    for name in buffer.axes:
        axis = builder.by_name[name]
        if indptr_of(axis) is not None or value_index == builder.slots[axis.parent]:
            value_index, count = builder.slots[name], builder.counts[name]
            continue
        width = width_in(builder, axis)
        if width.value != 1:
            value_index = digits(value_index, width.expr, index_var(f"x_{name}"))
            count = arguments.product(f"k_values_{name}", count, width)
    if not buffer.extra_storage:
        return value_index, count
    return value_index, arguments.integer("k_stored", builder.storage.value_count)
