"""Axes that store coordinates."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.assembly import require_word
from gossamer_formats.conversion.compiled.assembly_state import (
    Appended,
    AssemblyState,
    NotDirectError,
    Place,
    Store,
    offsets_of_ends,
)
from gossamer_formats.conversion.compiled.dense_axes import add_fixed
from gossamer_formats.conversion.compiled.fiber_counts import fiber_counts, is_grouped, is_sorted
from gossamer_formats.conversion.compiled.marked_fibers import add_ranks, marked_fibers
from gossamer_formats.conversion.compiled.program import Operand
from gossamer_formats.conversion.dtypes import native_index_dtype
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis
from gossamer_ir.support.index_arrays import bit_counts


def add_compressed(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, parent: Place
) -> None:
    coordinate = state.coordinates[axis.name]
    if indptr is not None and indices.is_mask:
        _add_bits(state, axis, indptr, indices, parent)
        return
    slot = state.coordinates.get(f"{axis.name} slot")
    if slot is not None:
        add_fixed(state, axis, slot, state.sizes.value(width_of(axis)))
        _store(state, axis, indices, has_unused=True)
    elif indptr is None and integer_value(width_of(axis)) == 1 and state.in_own_slot:
        add_fixed(state, axis, "0", 1)
        _store(state, axis, indices)
    elif _has_slot_per_element(state, axis, indices):
        _add_own_slots(state, axis, indptr, indices, parent)
    elif not indices.unique:
        raise NotDirectError("slots are repeated as often as the axes below need it")
    elif parent.slots == 1 and parent.text == "0":
        _add_numbered(state, axis, indptr, indices, coordinate)
    elif indptr is not None:
        _add_marked(state, axis, indptr, indices, parent)
    else:
        raise NotDirectError("fibers of fixed width share slots")


def _has_slot_per_element(state: AssemblyState, axis: Axis, indices: Indices) -> bool:
    after = _after(state, axis)
    if indices.unique and any(indices_of(other) is not None for other in after):
        return False
    return all(not is_varied(other) and integer_value(width_of(other)) == 1 for other in after)


def _after(state: AssemblyState, axis: Axis) -> list[Axis]:
    names = state.description.buffer.axes
    return [state.axes[name] for name in names[names.index(axis.name) + 1 :]]


def _store(state: AssemblyState, axis: Axis, indices: Indices, *, has_unused: bool = False) -> None:
    length = state.sizes.value(axis.length)
    unused = length if has_unused else None
    most = length if has_unused else length - 1
    state.stores.append(Store(axis.name, indices.handle, most, unused))


def _add_own_slots(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, parent: Place
) -> None:
    """Add an axis with a slot for each element."""
    keys = [axis.name, *(other.name for other in _after(state, axis) if indices_of(other))]
    state.in_own_slot = True
    is_sequence = parent.slots == 1 or is_grouped(state, axis)
    is_sequence = is_sequence and is_sorted(state, keys)
    if is_sequence and not state.loop.counts_values and _takes_any_number(state, axis, indptr):
        _append(state, axis, indptr, indices, parent)
    elif indptr is None:
        _add_own_slots_of_width(state, axis, indices, parent, keys, is_sequence=is_sequence)
    elif is_sequence and state.loop.counts_values:
        state.set_offsets(indptr, _offsets_in_order(state, parent))
        _add_positions(state, axis, indices)
    else:
        state.fills_slots = True
        counts = fiber_counts(state, parent, keys)
        starts = state.add_offsets(indptr, counts, most=state.source.values.size)
        slot = state.take(axis.name, parent, starts[:-1])
        state.set_varied(axis, slot, int(starts[-1]))
        _store(state, axis, indices)


def _add_own_slots_of_width(
    state: AssemblyState,
    axis: Axis,
    indices: Indices,
    parent: Place,
    keys: list[str],
    *,
    is_sequence: bool,
) -> None:
    if is_sequence and parent.slots == 1 and state.loop.counts_values:
        counts = np.array([state.source.values.size])
    else:
        counts = fiber_counts(state, parent, keys)
    width = state.sizes.bind(width_of(axis), int(counts.max(initial=0)))
    if np.any(counts > width):
        raise NotDirectError("a fiber has too many elements")
    is_whole = bool(np.all(counts == width))
    if parent != state.position:
        raise NotDirectError("the values have other slots than the axis")
    if is_whole and is_sequence and state.loop.counts_values:
        _add_positions(state, axis, indices)
        return
    state.fills_slots = is_whole
    starts = np.arange(parent.slots, dtype=np.int64) * width
    state.set_varied(axis, state.take(axis.name, parent, starts), parent.slots * width)
    _store(state, axis, indices, has_unused=not is_whole)


def _takes_any_number(state: AssemblyState, axis: Axis, indptr: Indptr | None) -> bool:
    """Return whether an axis may have any number of slots, which stand one after the other."""
    if state.description.buffer.extra_storage:
        return False
    if indptr is None:
        is_one_fiber = state.places[axis.parent].slots == 1
        return is_one_fiber and not state.sizes.is_known(width_of(axis))
    return indptr.nnz is None or not state.sizes.is_known(indptr.nnz)


def _add_positions(state: AssemblyState, axis: Axis, indices: Indices) -> None:
    """Add an axis whose slots are the positions of the source."""
    state.in_order = state.fills_slots = True
    state.set_varied(axis, "p", state.source.values.size, state.loop.size)
    _store(state, axis, indices)


def _offsets_in_order(state: AssemblyState, parent: Place) -> Array:
    """Return the first slot of each fiber, if slots are the positions of the source."""
    dtype = native_index_dtype(state.source.values.size)
    ends = np.zeros(parent.slots, dtype)
    state.query([f"ENDS[{parent.text}] = T.{dtype}(p + 1)"], {"ENDS": Operand(ends, parent.size)})
    return offsets_of_ends(ends)


def _append(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, parent: Place
) -> None:
    """Add an axis to which the last program appends the elements."""
    state.appended = Appended(axis, indptr, parent)
    state.fills_slots = True
    state.set_varied(axis, f"slot_{axis.name}", state.source.values.size, state.loop.size)
    _store(state, axis, indices)


def _add_numbered(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, coordinate: str
) -> None:
    """Add an axis with one fiber: a table has the slot of each coordinate."""
    span, length = state.sizes.value(axis.length), state.length(axis)
    state.require_table(span)
    listed = state.occurring(coordinate, span, length)
    numbers = state.numbering(f"NUMBER_{axis.name}", listed, span, length)
    slot = f"T.int64({numbers}[{coordinate}])"
    if indptr is not None:
        state.add_offsets(indptr, np.array([listed.size]))
        state.arrays[indices.handle] = listed
        state.set_varied(axis, slot, listed.size)
        return
    width = state.sizes.bind(width_of(axis), listed.size)
    if listed.size > width:
        raise NotDirectError("a fiber has too many elements")
    state.arrays[indices.handle] = np.full(width, span, np.int64)
    state.arrays[indices.handle][: listed.size] = listed
    state.set_varied(axis, slot, width)


def _add_marked(
    state: AssemblyState, axis: Axis, indptr: Indptr, indices: Indices, parent: Place
) -> None:
    """Add an axis whose slots are shared by elements."""
    fibers = marked_fibers(state, axis, parent)
    state.set_offsets(indptr, fibers.offsets)
    state.arrays[indices.handle] = fibers.coordinates
    rank = add_ranks(state, axis, parent, fibers, state.coordinates[axis.name])
    state.set_varied(axis, f"b_{axis.name} + {rank}", int(fibers.offsets[-1]))


def _add_bits(
    state: AssemblyState, axis: Axis, indptr: Indptr, indices: Indices, parent: Place
) -> None:
    """Add an axis whose coordinates are the bits of words, in which a program sets those of the elements. The
    slot of a coordinate follows from the bits below it."""
    require_word(axis, indices, length=state.sizes.value(axis.length))
    bit = f"(T.uint64(1) << T.uint64({state.coordinates[axis.name]}))"
    words = np.zeros(parent.slots, np.uint64)
    state.query(
        [f"g_ = {parent.text}", f"WORDS[g_] = WORDS[g_] | {bit}"],
        {"WORDS": Operand(words, parent.size)},
    )
    offsets = state.add_offsets(indptr, bit_counts(words))
    state.arrays[indices.handle] = words
    begin = state.pass_offsets(axis, offsets, parent).format(parent.text)
    name = f"WORDS_{axis.name}"
    state.arguments[name] = Operand(words, parent.size)
    rank = f"T.int64(T.popcount({name}[{parent.text}] & ({bit} - T.uint64(1))))"
    state.set_varied(axis, f"{begin} + {rank}", int(offsets[-1]))
