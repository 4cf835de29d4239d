"""The loops over the axes of a source."""

from __future__ import annotations

from gossamer_formats.axis_order import ancestors
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    digits,
    let,
    load,
    loop,
    offsets_facts,
    operation,
    when,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import total_of
from gossamer_formats.conversion.by_kernels.source.source_loops import (
    SourceLoopBuilder,
    add_array,
    length_in,
    width_in,
)
from gossamer_ir.core.axis_kinds import Indices, indices_of, indptr_of
from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub
from gossamer_ir.nodes import Axis, Call, Expr, InRange


def add_axis(builder: SourceLoopBuilder, axis: Axis) -> None:
    """Add the loop over an axis, unless its coordinate is bound, and bind its slot and its coordinate."""
    indices = indices_of(axis)
    if indptr_of(axis) is not None:
        _add_varied(builder, axis, indices)
    else:
        _add_fixed(builder, axis)
    if indices is not None:
        _bind_stored(builder, axis, indices)


def _add_varied(builder: SourceLoopBuilder, axis: Axis, indices: Indices | None) -> None:
    name, parent = axis.name, builder.slots[axis.parent]
    begin, end = _fiber(builder, axis, parent)
    slot, position = index_var(f"e_{name}"), index_var(f"s_{name}")
    if name in builder.sorted_slots:
        builder.nest.append(loop(position.name, begin, end, []))
        builder.nest.append(let(slot.name, _sorted_slot(builder, name, position)))
    elif indices is not None and indices.is_mask:
        # The slots of a fiber are counted from 0: `find_nth_bit` of such a loop needs few steps.
        builder.nest.append(loop(position.name, ZERO, sub(end, begin), []))
        builder.nest.append(let(slot.name, add(begin, position)))
    else:
        if _are_ancestors(builder, axis):
            builder.whole[slot.name] = loop(slot.name, ZERO, builder.counts[name].expr, [])
        builder.nest.append(loop(slot.name, begin, end, []))
    builder.slots[name] = slot
    if indices is None:
        builder.coordinates[name] = index_var(f"c_{name}")
        builder.nest.append(let(f"c_{name}", sub(slot, begin)))


def _are_ancestors(builder: SourceLoopBuilder, axis: Axis) -> bool:
    """Return whether the loops so far are over all slots of the ancestors of an axis, in their order."""
    above = ancestors(builder.by_name, axis.name)[::-1]
    is_in_order = not builder.sorted_slots and not builder.contents
    return builder.visits_all and is_in_order and [*builder.coordinates] == above


def _add_fixed(builder: SourceLoopBuilder, axis: Axis) -> None:
    name, width = axis.name, width_in(builder, axis)
    parent = builder.slots[axis.parent]
    builder.counts[name] = builder.arguments.product(
        f"k_{name}", builder.counts[axis.parent], width
    )
    if width.value == 1:
        builder.slots[name], builder.coordinates[name] = parent, ZERO
        return
    position = index_var(f"x_{name}")
    if name not in builder.coordinates:
        builder.nest.append(loop(position.name, ZERO, width.expr, []))
    builder.coordinates[name] = position
    builder.slots[name] = slot = digits(parent, width.expr, position)
    if slot != position:
        builder.slots[name] = index_var(f"e_{name}")
        builder.nest.append(let(f"e_{name}", slot))


def _bind_stored(builder: SourceLoopBuilder, axis: Axis, indices: Indices) -> None:
    """Bind a stored coordinate."""
    name = axis.name
    coordinate = builder.coordinates[name] = index_var(f"c_{name}")
    if indices.is_mask:
        builder.nest.append(let(coordinate.name, _bit(builder, axis, indices)))
        return
    length, last = length_in(builder, axis).expr, ONE if indices.padded else ZERO
    array = f"S_{indices.handle}"
    facts = (InRange(array, ZERO, add(length, last)),)
    add_array(builder, indices.handle, indices.dtype, builder.counts[name].expr, facts)
    builder.nest.append(let(coordinate.name, load(array, builder.slots[name], indices.dtype)))
    builder.at_value_index[name] = indices.handle
    if indices.padded:
        builder.nest.append(when(compare("lt", coordinate, length), []))
        builder.visits_all = False


def _fiber(builder: SourceLoopBuilder, axis: Axis, parent: Expr) -> tuple[Expr, Expr]:
    """Add an array of offsets, and return the first slot of a fiber and the one after the last."""
    indptr = indptr_of(axis)
    assert indptr is not None
    array, parents = f"S_{indptr.handle}", builder.counts[axis.parent].expr
    total = builder.arguments.recorder.compute(total_of, builder.storage.arrays[indptr.handle])
    count = builder.counts[axis.name] = builder.arguments.integer(f"k_{axis.name}", total)
    facts = offsets_facts(array, parents, count.expr)
    add_array(builder, indptr.handle, indptr.dtype, add(parents, ONE), facts)
    return load(array, parent, indptr.dtype), load(array, add(parent, ONE), indptr.dtype)


def _sorted_slot(builder: SourceLoopBuilder, name: str, position: Expr) -> Expr:
    """Add the array of slots in the order of their coordinates, and return the next one."""
    array, count = f"ORDER_{name}", builder.counts[name].expr
    facts = (InRange(array, ZERO, count),)
    builder.arguments.array(array, builder.sorted_slots[name], "int32", count, facts)
    return load(array, position, "int32")


def _bit(builder: SourceLoopBuilder, axis: Axis, indices: Indices) -> Expr:
    """Add an array of words, and return the coordinate: the index of a bit."""
    count = builder.counts[axis.parent].expr
    add_array(builder, indices.handle, indices.dtype, count)
    word = load(f"S_{indices.handle}", builder.slots[axis.parent], indices.dtype)
    bit = Call("find_nth_bit", (word, index_var(f"s_{axis.name}")), "int64")
    return operation("min", bit, sub(length_in(builder, axis).expr, ONE))
