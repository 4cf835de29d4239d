"""The offsets of fibers, and the numbers of slots of axes whose fibers vary."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.target_axes import AxisSlot, IndexArray, TargetAxes
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import load, store
from gossamer_formats.conversion.recording.array_scalars import total_of
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.conversion.recording.recorded_storage import is_list
from gossamer_formats.conversion.target.dtypes import native_index_dtype
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indptr, is_varied, width_of
from gossamer_ir.core.build import ONE, add
from gossamer_ir.nodes import Axis, Expr, Store, Var


def add_offsets(
    state: TargetAxes, indptr: Indptr, lengths: RecordedValue, most: RecordedValue
) -> IndexArray:
    """Return the first slots of fibers with known lengths; there are at most `most` slots."""
    dtype = state.recorder.decide(native_index_dtype, most)
    return set_offsets(
        state, indptr, state.recorder.compute(offsets_of_lengths, lengths, dtype), dtype
    )


def set_offsets(
    state: TargetAxes, indptr: Indptr, offsets: RecordedValue, dtype: str
) -> IndexArray:
    """Add the first slots of fibers to the storage."""
    total = state.recorder.compute(total_of, offsets)
    found = state.arrays[indptr.handle] = IndexArray(offsets, dtype, total)
    set_total(state, indptr, total)
    return found


def set_total(state: TargetAxes, indptr: Indptr, total: RecordedValue) -> None:
    """Set the number of all slots of an axis whose fibers vary."""
    if isinstance(indptr.nnz, Var) and not state.sizes.is_known(indptr.nnz):
        state.slot_counts.setdefault(indptr.nnz.name, total)
    elif indptr.nnz is not None:
        expected = state.sizes.value(indptr.nnz)
        if not state.recorder.decide(_are_equal, total, expected):
            raise NotDirectError("the number of slots differs from the one that is given")


def is_unknown_list(state: TargetAxes, axis: Axis) -> bool:
    """Return whether the only fiber of an axis may have any number of slots, which becomes a size."""
    width = None if is_varied(axis) else width_of(axis)
    is_unknown = isinstance(width, Var) and not state.sizes.is_known(width)
    return is_unknown and is_list(state.description, axis)


def set_list_size(state: TargetAxes, axis: Axis, count: RecordedValue) -> None:
    """Set the number of slots of an axis with a single fiber."""
    width = width_of(axis)
    assert isinstance(width, Var)
    state.slot_counts[width.name] = count


def _are_equal(first: int, second: int) -> bool:
    return first == second


def pass_offsets(state: TargetAxes, axis: Axis, offsets: IndexArray, parent: AxisSlot) -> Expr:
    """Pass an array of offsets to the kernels, and return the first slot of the element's fiber."""
    name, size = f"OFFSETS_{axis.name}", add(parent.size.expr, ONE)
    state.arguments.array(name, offsets.array, offsets.dtype, size)
    return load(name, parent.slot, offsets.dtype)


def offsets_of_lengths(lengths: Array, dtype: str) -> Array:
    """Return the first slots of fibers, and the number of all slots.

    >>> offsets_of_lengths(np.array([2, 0, 1]), "int32")
    array([0, 2, 2, 3], dtype=int32)
    """
    offsets = np.empty(lengths.size + 1, dtype)
    offsets[0] = 0
    lengths.cumsum(dtype=dtype, out=offsets[1:])
    return offsets


ENDS = "ENDS"
"""The array in which kernels store the ends of fibers; its first element is the start of the first fiber."""


def no_ends(fibers: int, dtype: str) -> Array:
    """Return the array of ends before any is known."""
    return np.zeros(fibers + 1, dtype)


def ends_argument(ends: RecordedValue, dtype: str, fibers: Size) -> ArrayArgument:
    """Return the array of ends as an argument."""
    return ArrayArgument(ends, dtype, (add(fibers.expr, ONE),))


def store_end(fiber: Expr, end: Expr, dtype: str) -> Store:
    """Return the statement that stores the end of a fiber."""
    return store(ENDS, add(fiber, ONE), end, dtype)


def offsets_of_ends(ends: Array) -> Array:
    """Return the first slots of fibers from the ends of those that have elements; others have the end 0.

    >>> offsets_of_ends(np.array([0, 0, 2, 0, 3]))
    array([0, 0, 2, 2, 3])
    """
    return np.maximum.accumulate(ends)


def starts_of(offsets: Array) -> Array:
    """Return the first slots of fibers, without the number of all slots."""
    return offsets[:-1]
