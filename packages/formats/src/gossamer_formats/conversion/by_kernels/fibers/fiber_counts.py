"""The number of elements of each fiber of an axis, and whether these are sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    axes_before,
    coordinate_along,
    logical_dimension,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import require_table
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    increment,
    let,
    load_local,
    select,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import has_flag
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import (
    NotDirectError,
    UnsortedFibersError,
)
from gossamer_formats.conversion.by_kernels.source.element_order import (
    ascends,
    can_ascend,
    is_grouped_by,
)
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.nodes import Axis, Load, Stmt
from gossamer_support.arrays import Array


def fiber_counts(state: BuildState, parent: AxisSlot, keys: Sequence[str]) -> RecordedValue:
    """Return how many elements each fiber has.

    Within a fiber, elements must be sorted by the coordinates of some axes, and distinct. Raises
    `NotDirectError` (`needs_order`).
    """
    require_table(state, parent.size.value)
    if not is_sorted(state, keys):
        return _count_and_check(state, parent, keys)
    if parent.size.value == 1 and state.loop.visits_all:
        return state.recorder.compute(single_count, state.source.value_count)
    counts = no_counts(state, parent)
    query = {"COUNT": ArrayArgument(counts, "int32", (parent.size.expr,))}
    run_query(state, [increment("COUNT", parent.slot, "int32")], query)
    return counts


def no_counts(state: BuildState, parent: AxisSlot) -> RecordedValue:
    """Return a number for each fiber, 0 at first."""
    return state.recorder.compute(np.zeros, parent.size.value, np.int32)


def single_count(count: int) -> Array:
    """Return the number of elements of the only fiber."""
    return np.array([count])


def is_sorted(state: BuildState, keys: Sequence[str]) -> bool:
    """Return whether the elements of a fiber are known to be sorted by their coordinates along axes.

    The other logical coordinates are those of the fiber. Raises `UnsortedFibersError` if they would be sorted
    if the fibers of the source were.
    """
    if not state.requirements.requires_order:
        return True
    dimensions = _logical_dimensions(state, keys)
    if dimensions is None:
        return False
    if not can_ascend(state.order, dimensions):
        return False
    if not ascends(state.order, dimensions):
        raise UnsortedFibersError("the fibers of the source are not sorted")
    return True


def is_grouped(state: BuildState, axis: Axis) -> bool:
    """Return whether the elements of each fiber of an axis are known to be together, in the order of the
    fibers."""
    outer = [name for name in axes_before(state, axis) if coordinate_along(state, name) != ZERO]
    dimensions = _logical_dimensions(state, outer)
    return dimensions is not None and is_grouped_by(state.order, dimensions)


def _logical_dimensions(state: BuildState, names: Sequence[str]) -> list[int] | None:
    """Return the logical dimensions that have the coordinates along axes; None if one has none."""
    dimensions_or_none = [logical_dimension(state, name) for name in names]
    dimensions = [dimension for dimension in dimensions_or_none if dimension is not None]
    return dimensions if len(dimensions) == len(dimensions_or_none) else None


def _count_and_check(state: BuildState, parent: AxisSlot, keys: Sequence[str]) -> RecordedValue:
    if len(keys) > 1:
        raise NotDirectError("elements are not in order", needs_order=True)
    recorder, size = state.recorder, parent.size
    counts = no_counts(state, parent)
    lasts = recorder.compute(np.full, size.value, -1, np.int64)
    flag = recorder.compute(np.zeros, 1, np.uint8)
    coordinate, fiber = coordinate_along(state, keys[0]), index_var("g_")
    is_after = compare("gt", coordinate, Load("LAST", (fiber,), "int64"))
    stmts: list[Stmt] = [
        let(fiber.name, parent.slot),
        store_local("UNSORTED", select(is_after, load_local("UNSORTED"), ONE)),
        store("LAST", fiber, coordinate),
        increment("COUNT", fiber, "int32"),
    ]
    run_query(
        state,
        stmts,
        {
            "COUNT": ArrayArgument(counts, "int32", (size.expr,)),
            "LAST": ArrayArgument(lasts, "int64", (size.expr,)),
            "FLAG": ArrayArgument(flag, "uint8", (ONE,)),
        },
        before=define_local("UNSORTED", ZERO),
        after=[store("FLAG", ZERO, load_local("UNSORTED"), "uint8")],
    )
    if recorder.decide(has_flag, flag):
        raise NotDirectError("elements are not sorted", needs_order=True)
    return counts
