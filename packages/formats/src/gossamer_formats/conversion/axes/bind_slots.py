"""The places of elements along axes, and the offsets of their fibers."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.target_axes import IndexArray, SlotPlace, TargetAxes
from gossamer_formats.conversion.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import let, load, store
from gossamer_formats.conversion.recording.array_scalars import total_of
from gossamer_formats.conversion.recording.branch import PlanValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.conversion.recording.recorded_storage import is_list
from gossamer_formats.conversion.target.dtypes import native_index_dtype
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indptr, is_varied, width_of
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.nodes import Axis, Const, Expr, Store, Var


def set_place(state: TargetAxes, axis: Axis, place: SlotPlace) -> None:
    """Bind the slot of an axis."""
    slot = place.slot
    if not isinstance(slot, Var | Const):
        slot = index_var(f"t_{axis.name}")
        state.bindings.append(let(slot.name, place.slot))
    state.places[axis.name] = SlotPlace(slot, place.size)


def set_varied_place(
    state: TargetAxes, axis: Axis, slot: Expr, count: int | PlanValue, size: Expr | None = None
) -> None:
    """Bind the slot of an axis that the values of the elements have as well."""
    found = state.arguments.integer(f"N_{axis.name}", count) if size is None else Size(size, count)
    set_place(state, axis, SlotPlace(slot, found))
    state.position = state.places[axis.name]


def add_offsets(
    state: TargetAxes, indptr: Indptr, lengths: PlanValue, most: PlanValue
) -> IndexArray:
    """Return the first slots of fibers with known lengths; there are at most `most` slots."""
    dtype = state.recorder.decide(native_index_dtype, most)
    return set_offsets(
        state, indptr, state.recorder.compute(offsets_of_lengths, lengths, dtype), dtype
    )


def set_offsets(state: TargetAxes, indptr: Indptr, offsets: PlanValue, dtype: str) -> IndexArray:
    """Add the first slots of fibers to the storage."""
    total = state.recorder.compute(total_of, offsets)
    found = state.arrays[indptr.handle] = IndexArray(offsets, dtype, total)
    set_total(state, indptr, total)
    return found


def set_total(state: TargetAxes, indptr: Indptr, total: PlanValue) -> None:
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


def set_list_size(state: TargetAxes, axis: Axis, count: PlanValue) -> None:
    """Set the number of slots of an axis with a single fiber."""
    width = width_of(axis)
    assert isinstance(width, Var)
    state.slot_counts[width.name] = count


def _are_equal(first: int, second: int) -> bool:
    return first == second


def pass_offsets(state: TargetAxes, axis: Axis, offsets: IndexArray, parent: SlotPlace) -> Expr:
    """Pass an array of offsets to the programs, and return the first slot of the element's fiber."""
    name, size = f"OFFSETS_{axis.name}", add(parent.size.expr, ONE)
    state.arguments.array(name, offsets.array, offsets.dtype, size)
    return load(name, parent.slot, offsets.dtype)


def take_numbers(state: TargetAxes, name: str, at: SlotPlace, starts: PlanValue) -> Expr:
    """Bind a number that counts the elements at a place from a start, and return it."""
    # The last fiber begins last.
    dtype = state.recorder.decide(_cursor_dtype, starts, state.source.value_count)
    counting = state.recorder.compute(np.ndarray.astype, starts, dtype)
    state.arguments.array(f"CURSOR_{name}", counting, dtype, at.size.expr)
    return take_numbers_from(state, name, at, dtype)


def take_numbers_from(state: TargetAxes, name: str, at: SlotPlace, dtype: str) -> Expr:
    """Bind a number that counts the elements at a place, from the array of cursors."""
    cursors, place, taken = f"CURSOR_{name}", index_var(f"at_{name}"), index_var(f"r_{name}")
    state.bindings += [
        let(place.name, at.slot),
        let(taken.name, load(cursors, place, dtype)),
        store(cursors, place, add(taken, ONE), dtype),
    ]
    return taken


def _cursor_dtype(starts: Array, count: int) -> str:
    return native_index_dtype((int(starts[-1]) if starts.size else 0) + count)


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
"""The array in which programs store the ends of fibers; the first number is the start of the first one."""


def no_ends(fibers: int, dtype: str) -> Array:
    """Return the array of ends before any is known."""
    return np.zeros(fibers + 1, dtype)


def ends_argument(ends: PlanValue, dtype: str, fibers: Size) -> ArrayArgument:
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
