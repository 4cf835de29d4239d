"""Axes that store coordinates."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.assembly_state import (
    AssemblyState,
    NotDirectError,
    Place,
    Store,
)
from gossamer_formats.conversion.compiled.dense_axes import add_fixed
from gossamer_formats.conversion.compiled.fiber_counts import counted_in, fiber_counts, is_grouped
from gossamer_formats.conversion.compiled.program import indented
from gossamer_formats.conversion.compiled.sorted_fibers import sorted_in_fibers
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, is_varied, width_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Axis


def add_compressed(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, parent: Place
) -> None:
    coordinate = state.coordinates[axis.name]
    slot = state.coordinates.get(f"{axis.name} slot")
    if slot is not None:
        width = state.sizes.value(width_of(axis))
        add_fixed(state, axis, slot, width)
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
    counts = fiber_counts(state, parent, keys)
    if indptr is not None:
        starts = state.add_offsets(axis, indptr, counts)
        state.set_varied(axis, _slot(state, axis, parent, starts[:-1]), int(starts[-1]))
        _store(state, axis, indices)
        return
    width = state.sizes.bind(width_of(axis), int(counts.max(initial=0)))
    if np.any(counts > width):
        raise NotDirectError("a fiber has too many elements")
    is_whole = bool(np.all(counts == width))
    starts = np.arange(parent.slots, dtype=np.int64) * width
    same = parent == state.position
    if not same:
        raise NotDirectError("the values have other slots than the axis")
    slot = _slot(state, axis, parent, starts, is_whole=is_whole)
    state.set_varied(axis, slot, parent.slots * width)
    _store(state, axis, indices, has_unused=not is_whole)


def _slot(
    state: AssemblyState, axis: Axis, parent: Place, starts: Array, *, is_whole: bool = True
) -> str:
    """Return the text of the slot of an element; each fiber starts at a number of its own."""
    if is_whole and state.loop.visits_all and is_grouped(state, axis):
        state.in_order = True
        return "p"
    return state.take(axis.name, parent.text, starts)


def _add_numbered(
    state: AssemblyState, axis: Axis, indptr: Indptr | None, indices: Indices, coordinate: str
) -> None:
    """Add an axis with one fiber: a table has the slot of each coordinate."""
    span = state.sizes.value(axis.length)
    state.require_table(span)
    listed = state.occurring(coordinate, span)
    slot = f"T.int64({state.numbering(f'NUMBER_{axis.name}', listed, span)}[{coordinate}])"
    if indptr is not None:
        state.add_offsets(axis, indptr, np.array([listed.size]))
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
    """Add an axis whose slots are shared by elements. Those of a fiber must be together: a table has the
    slot of each coordinate of one fiber at a time."""
    name, coordinate = axis.name, state.coordinates[axis.name]
    span = state.sizes.value(axis.length)
    state.require_table(span)
    counts, flags = np.zeros(parent.slots, np.int32), np.zeros(1, np.uint8)
    listed, total = np.empty(state.source.values.size, np.int32), np.zeros(1, np.int64)
    statements = [
        f"g_ = {parent.text}",
        "if g_ < LAST[0]:",
        "    FLAGS[0] = T.uint8(1)",
        "LAST[0] = g_",
        f"c_ = {coordinate}",
        "if T.int64(MARK[c_]) != g_ + 1:",
        "    MARK[c_] = T.int32(g_ + 1)",
        "    LISTED[TOTAL[0]] = T.int32(c_)",
        "    TOTAL[0] = TOTAL[0] + 1",
        *indented(counted_in("g_")),
    ]
    tables: dict[str, Array | int] = {
        "MARK": np.zeros(span, np.int32),
        "LAST": np.zeros(1, np.int64),
    }
    found: dict[str, Array | int] = {
        "COUNT": counts,
        "FLAGS": flags,
        "LISTED": listed,
        "TOTAL": total,
    }
    state.query(statements, {**tables, **found})
    if flags[0]:
        raise NotDirectError("elements of a fiber are not together", needs_order=True)
    offsets = state.add_offsets(axis, indptr, counts)
    in_order = sorted_in_fibers(state.compile, listed[: int(total[0])], offsets, span)
    state.arrays[indices.handle] = in_order
    state.arguments |= {
        f"OFFSETS_{name}": offsets,
        f"INDICES_{name}": in_order,
        f"SLOT_{name}": np.empty(span, np.int32),
    }
    state.starts += [
        f'FIBER_{name} = T.alloc_buffer((1,), "int64", scope="local")',
        f"FIBER_{name}[0] = -1",
    ]
    state.statements += [
        f"g_{name} = {parent.text}",
        f"if g_{name} != FIBER_{name}[0]:",
        f"    FIBER_{name}[0] = g_{name}",
        f"    for s_{name} in T.serial(OFFSETS_{name}[g_{name}], OFFSETS_{name}[g_{name} + 1]):",
        f"        SLOT_{name}[T.int64(INDICES_{name}[s_{name}])] = T.int32(s_{name})",
    ]
    state.set_varied(axis, f"T.int64(SLOT_{name}[{coordinate}])", int(offsets[-1]))
