"""The loops over the axes of a source."""

from __future__ import annotations

from gossamer_formats.conversion.kernels.statements import (
    compare,
    digits,
    let,
    load,
    loop,
    offsets_facts,
    operation,
    when,
)
from gossamer_formats.conversion.recording.array_scalars import (
    total_of,
)
from gossamer_formats.conversion.source.source_axes import (
    SourceAxes,
    add_array,
    length_in,
    width_in,
)
from gossamer_formats.storage import ancestors
from gossamer_ir.core.axis_kinds import Indices, indices_of, indptr_of
from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub
from gossamer_ir.nodes import Axis, Call, Expr, InRange


def add_axis(source_axes: SourceAxes, axis: Axis) -> None:
    """Add the loop over an axis, unless its coordinate is bound, and bind its slot and its coordinate."""
    indices = indices_of(axis)
    if indptr_of(axis) is not None:
        _add_varied(source_axes, axis, indices)
    else:
        _add_fixed(source_axes, axis)
    if indices is not None:
        _bind_stored(source_axes, axis, indices)


def _add_varied(source_axes: SourceAxes, axis: Axis, indices: Indices | None) -> None:
    name, parent = axis.name, source_axes.slots[axis.parent]
    begin, end = _fiber(source_axes, axis, parent)
    slot, position = index_var(f"e_{name}"), index_var(f"s_{name}")
    if name in source_axes.sorted_slots:
        source_axes.nest.append(loop(position.name, begin, end, []))
        source_axes.nest.append(let(slot.name, _sorted_slot(source_axes, name, position)))
    elif indices is not None and indices.is_mask:
        # The slots of a fiber are counted from 0: `find_nth_bit` of such a loop needs few steps.
        source_axes.nest.append(loop(position.name, ZERO, sub(end, begin), []))
        source_axes.nest.append(let(slot.name, add(begin, position)))
    else:
        if _are_ancestors(source_axes, axis):
            source_axes.whole[slot.name] = loop(slot.name, ZERO, source_axes.counts[name].expr, [])
        source_axes.nest.append(loop(slot.name, begin, end, []))
    source_axes.slots[name] = slot
    if indices is None:
        source_axes.coordinates[name] = index_var(f"c_{name}")
        source_axes.nest.append(let(f"c_{name}", sub(slot, begin)))


def _are_ancestors(source_axes: SourceAxes, axis: Axis) -> bool:
    """Return whether the loops so far are over all slots of the ancestors of an axis, in their order."""
    above = ancestors(source_axes.by_name, axis.name)[::-1]
    is_in_order = not source_axes.sorted_slots and not source_axes.contents
    return source_axes.visits_all and is_in_order and [*source_axes.coordinates] == above


def _add_fixed(source_axes: SourceAxes, axis: Axis) -> None:
    name, width = axis.name, width_in(source_axes, axis)
    parent = source_axes.slots[axis.parent]
    source_axes.counts[name] = source_axes.arguments.product(
        f"k_{name}", source_axes.counts[axis.parent], width
    )
    if width.value == 1:
        source_axes.slots[name], source_axes.coordinates[name] = parent, ZERO
        return
    position = index_var(f"x_{name}")
    if name not in source_axes.coordinates:
        source_axes.nest.append(loop(position.name, ZERO, width.expr, []))
    source_axes.coordinates[name] = position
    source_axes.slots[name] = slot = digits(parent, width.expr, position)
    if slot != position:
        source_axes.slots[name] = index_var(f"e_{name}")
        source_axes.nest.append(let(f"e_{name}", slot))


def _bind_stored(source_axes: SourceAxes, axis: Axis, indices: Indices) -> None:
    """Bind a stored coordinate."""
    name = axis.name
    coordinate = source_axes.coordinates[name] = index_var(f"c_{name}")
    if indices.is_mask:
        source_axes.nest.append(let(coordinate.name, _bit(source_axes, axis, indices)))
        return
    length, last = length_in(source_axes, axis).expr, ONE if indices.padded else ZERO
    array = f"S_{indices.handle}"
    facts = (InRange(array, ZERO, add(length, last)),)
    add_array(source_axes, indices.handle, indices.dtype, source_axes.counts[name].expr, facts)
    source_axes.nest.append(
        let(coordinate.name, load(array, source_axes.slots[name], indices.dtype))
    )
    source_axes.at_value_index[name] = indices.handle
    if indices.padded:
        source_axes.nest.append(when(compare("lt", coordinate, length), []))
        source_axes.visits_all = False


def _fiber(source_axes: SourceAxes, axis: Axis, parent: Expr) -> tuple[Expr, Expr]:
    """Add an array of offsets, and return the first slot of a fiber and the one after the last."""
    indptr = indptr_of(axis)
    assert indptr is not None
    array, parents = f"S_{indptr.handle}", source_axes.counts[axis.parent].expr
    total = source_axes.arguments.recorder.compute(
        total_of, source_axes.storage.arrays[indptr.handle]
    )
    count = source_axes.counts[axis.name] = source_axes.arguments.integer(f"k_{axis.name}", total)
    facts = offsets_facts(array, parents, count.expr)
    add_array(source_axes, indptr.handle, indptr.dtype, add(parents, ONE), facts)
    return load(array, parent, indptr.dtype), load(array, add(parent, ONE), indptr.dtype)


def _sorted_slot(source_axes: SourceAxes, name: str, position: Expr) -> Expr:
    """Add the array of slots in the order of their coordinates, and return the next one."""
    array, count = f"ORDER_{name}", source_axes.counts[name].expr
    facts = (InRange(array, ZERO, count),)
    source_axes.arguments.array(array, source_axes.sorted_slots[name], "int32", count, facts)
    return load(array, position, "int32")


def _bit(source_axes: SourceAxes, axis: Axis, indices: Indices) -> Expr:
    """Add an array of words, and return the coordinate: the index of a bit."""
    count = source_axes.counts[axis.parent].expr
    add_array(source_axes, indices.handle, indices.dtype, count)
    word = load(f"S_{indices.handle}", source_axes.slots[axis.parent], indices.dtype)
    bit = Call("find_nth_bit", (word, index_var(f"s_{axis.name}")), "int64")
    return operation("min", bit, sub(length_in(source_axes, axis).expr, ONE))
