"""Tables of all coordinates: which occur among the elements, and their ranks."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.run_query import run_query
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import load, store
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_ir.core.build import ONE
from gossamer_ir.nodes import Distinct, Expr
from gossamer_support.arrays import Array

TABLE_FACTOR = 16
"""The largest number of entries that a table of coordinates or fibers has for each value of the source: NumPy
sorts elements whose coordinates are scattered over a larger range."""

MIN_TABLE = 2**16
"""The size up to which every table is made."""


def require_table(state: BuildState, size: int | RecordedValue) -> None:
    """Raise `NotDirectError` if a table of a size would be too large."""
    # Decided without the source, so that the recording is the same for all tensors of the kind.
    if isinstance(size, int) and size <= MIN_TABLE:
        return
    if not state.recorder.decide(_is_suitable, size, state.source.value_count):
        raise NotDirectError("a table of all coordinates would be too large")


def _is_suitable(size: int, value_count: int) -> bool:
    return size <= max(MIN_TABLE, TABLE_FACTOR * value_count)


def occurring(state: BuildState, value: Expr, size: Size) -> RecordedValue:
    """Return the values less than a size that occur among the elements, in ascending order."""
    marks = state.recorder.compute(np.zeros, size.value, np.uint8)
    marked = {"MARK": ArrayArgument(marks, "uint8", (size.expr,))}
    run_query(state, [store("MARK", value, ONE, "uint8")], marked)
    return state.recorder.compute(np.flatnonzero, marks)


def rank_in_table(
    state: BuildState,
    name: str,
    *,
    value: Expr,
    listed: RecordedValue,
    size: Size,
    lists_all: bool = False,
) -> Expr:
    """Add the table of the ranks of distinct listed values, and return that of the element's value.

    If the list has all values, their ranks are distinct, too; others have rank 0.
    """
    table = f"RANK_TABLE_{name}"
    ranks = state.recorder.compute(_ranks_of_listed, listed, size.value)
    facts = (Distinct(table),) if lists_all else ()
    state.arguments.array(table, ranks, "int32", size.expr, facts)
    return load(table, value, "int32")


def _ranks_of_listed(listed: Array, size: int) -> Array:
    """Return a table with the rank of each listed value: its index in the list.

    >>> _ranks_of_listed(np.array([2, 0]), 3)
    array([1, 0, 0], dtype=int32)
    """
    ranks = np.zeros(size, np.int32)
    ranks[listed] = np.arange(listed.size, dtype=np.int32)
    return ranks
