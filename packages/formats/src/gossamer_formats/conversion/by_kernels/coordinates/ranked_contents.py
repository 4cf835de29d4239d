"""The contents of an index array of the map, and the ranks of those of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import ROOT_SLOT
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import (
    occurring,
    rank_in_table,
    require_table,
)
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import increment, let, load, store
from gossamer_formats.conversion.by_kernels.recording.array_scalars import longest_of, size_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import slot_within
from gossamer_formats.conversion.destination.contents import (
    declares_distinct,
    listed_array,
    listed_contents,
    unused_content,
)
from gossamer_formats.conversion.destination.inverse_map import Solved
from gossamer_ir.core.build import ONE, index_var
from gossamer_ir.nodes import Expr, FormatDescription
from gossamer_support.arrays import Array


class ArrayContents(NamedTuple):
    """The contents of an index array of the map: `value` is that of an element, from 0 to `size` - 1, and
    stands for itself plus `low`."""

    buffer: str
    solved: Solved
    value: Expr
    size: Size
    low: int


class RankedContents(NamedTuple):
    """The rank of an element's contents, the number of ranks, and a function of the number of entries that
    returns the array."""

    rank: Expr
    total: int
    array: Callable[[int], RecordedValue]


def ranked_contents(state: BuildState, contents: ArrayContents) -> RankedContents:
    """Return the ranks among all contents."""
    name, size, low = contents.buffer, contents.size, contents.low
    require_table(state, size.value)
    listed = _list_contents(state, contents)
    from_low = state.recorder.compute(np.subtract, listed, low) if low else listed
    total = state.recorder.decide(size_of, listed)
    rank = rank_in_table(
        state,
        name,
        value=contents.value,
        listed=from_low,
        size=size,
        lists_all=total == size.value,
    )
    return RankedContents(rank, total, partial(_array_of_listed, state, contents, listed))


def _list_contents(state: BuildState, contents: ArrayContents) -> RecordedValue:
    """Return the contents in the order of the format, or those that occur in ascending order."""
    recorder, (name, solved, value, size, low) = state.recorder, contents
    if name not in state.destination.orders:
        ascending = occurring(state, value, size)
        return recorder.compute(np.add, ascending, low) if low else ascending
    counts = None
    if solved.extent is not None:
        counts = recorder.compute(np.zeros, size.value, np.int64)
        at = index_var("at_")
        counted = {"COUNT": ArrayArgument(counts, "int64", (size.expr,))}
        run_query(state, [let(at.name, value), increment("COUNT", at, "int64")], counted)
    return recorder.compute(listed_contents, state.destination, name, counts)


def _array_of_listed(
    state: BuildState, contents: ArrayContents, listed: RecordedValue, entries: int
) -> RecordedValue:
    unused = unused_content(contents.solved)
    return state.recorder.compute(
        _listed_array, state.description, contents.buffer, listed, entries, unused
    )


def _listed_array(
    description: FormatDescription, buffer_name: str, listed: Array, size: int, unused: int
) -> Array:
    return listed_array(description, buffer_name, listed, size=size, unused=unused)


def rank_in_groups(
    state: BuildState, contents: ArrayContents, known_names: Sequence[str]
) -> RankedContents:
    """Return the ranks among the contents of elements with the same coordinates along some axes, in ascending
    order: those of the columns that a block of rows chooses."""
    name, recorder = contents.buffer, state.recorder
    # Values of all entries would have to differ, which NumPy checks.
    if declares_distinct(state.description, name):
        raise NotDirectError("the contents of groups must be distinct")
    group = ROOT_SLOT
    for axis in known_names:
        group = slot_within(
            state,
            f"N_{name}_{axis}",
            outer=group,
            position=coordinate_along(state, axis),
            width=length_of_axis(state, state.by_name[axis]),
        )
    entry = slot_within(
        state,
        f"N_{name}_each",
        outer=group,
        position=contents.value,
        width=contents.size,
    )
    require_table(state, entry.size.value)
    marks = recorder.compute(np.zeros, entry.size.value, np.uint8)
    marked = {"MARK": ArrayArgument(marks, "uint8", (entry.size.expr,))}
    run_query(state, [store("MARK", entry.slot, ONE, "uint8")], marked)
    rows = recorder.compute(_rows, marks, contents.size.value)
    ranks = recorder.compute(_ranks_in_rows, rows)
    table = f"RANK_TABLE_{name}"
    state.arguments.array(table, ranks, "int32", entry.size.expr)
    total = recorder.decide(longest_of, recorder.compute(_counts_of_rows, rows))
    rank = load(table, entry.slot, "int32")
    return RankedContents(rank, total, partial(_array_of_rows, state, contents, rows))


def _array_of_rows(
    state: BuildState, contents: ArrayContents, rows: RecordedValue, entries: int
) -> RecordedValue:
    unused = unused_content(contents.solved)
    return state.recorder.compute(_marked_values, rows, entries, contents.low, unused)


def _rows(marks: Array, width: int) -> Array:
    return marks.reshape(-1, max(width, 1))


def _ranks_in_rows(marks: Array) -> Array:
    """Return for each mark how many are before it in its row.

    >>> _ranks_in_rows(np.array([[1, 0, 1], [0, 1, 1]], np.uint8)).tolist()
    [0, 1, 1, 0, 0, 1]
    """
    ranks = np.cumsum(marks, axis=1, dtype=np.int32)
    ranks -= marks
    return ranks.reshape(-1)


def _counts_of_rows(marks: Array) -> Array:
    counts: Array = np.count_nonzero(marks, axis=1)
    return counts


def _marked_values(marks: Array, entries: int, low: int, unused: int) -> Array:
    """Return the columns of the marks in each row, from `low`, and `unused` up to a number of all entries.

    >>> _marked_values(np.array([[1, 0, 1], [0, 1, 0]], np.uint8), 4, 10, 0)
    array([10, 12, 11,  0])
    """
    width = entries // max(marks.shape[0], 1)
    columns_of_rows = np.full(entries, unused, np.int64)
    rows, columns = np.nonzero(marks)
    firsts = np.cumsum(_counts_of_rows(marks)) - _counts_of_rows(marks)
    columns_of_rows[rows * width + np.arange(rows.size) - firsts[rows]] = columns + low
    return columns_of_rows
