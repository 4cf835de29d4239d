"""Slots of fibers that are counted by the kernel that fills them."""

from __future__ import annotations

from typing import NamedTuple

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    BuiltStorage,
    IndexArray,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisSlot,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.fibers.coordinate_tables import require_table
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import new_ends, slot_total
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import rename_bound_vars
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    define_local,
    increment,
    let,
    load,
    load_local,
    loop,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.slots.later_slots import later_slot
from gossamer_formats.conversion.by_kernels.slots.slots_in_fibers import next_array, take_next_from
from gossamer_formats.conversion.by_kernels.slots.slots_in_parts import slots_in_parts
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, Stmt


class CountedSlot(NamedTuple):
    """The slot of an element, what binds it, and the offsets of the fibers. If it `is_listed`, the slots of
    all elements are in an array."""

    slot: Expr
    elements: ElementBindings
    storage: BuiltStorage
    is_listed: bool = False


def counted_slot(state: BuildState, axis: Axis, *, indptr: Indptr, parent: AxisSlot) -> CountedSlot:
    """Return the slot of an element, if every value of the source is one: the fibers are counted before the
    loops of the last kernel, which also finds the offsets, or in parts for several threads.

    The offset after that of a fiber is its number of elements at first, then its next slot, and in the end
    the first slot of the next fiber.
    """
    require_table(state, parent.size.value)
    count, array = state.source.value_count, next_array(axis.name)
    offsets = state.arguments.by_name[array] = new_ends(state, parent)
    dtype = offsets.dtype
    complete = IndexArray(offsets.array, dtype, count)
    storage = BuiltStorage({indptr.handle: complete}, slot_counts=slot_total(state, indptr, count))
    in_parts = slots_in_parts(state, axis.name, fibers=parent, offsets=offsets)
    if in_parts is not None:
        return CountedSlot(in_parts.slot, in_parts.elements, storage, is_listed=True)
    # Shifted by one: when all slots are taken, each entry has become the first slot of the next fiber.
    after = parent._replace(slot=add(parent.slot, ONE))
    counting = [*state.elements.stmts, increment(array, after.slot, dtype)]
    # The loops stand twice in one kernel, so that the names of one of them must differ.
    starts = (
        *rename_bound_vars(state.loop.around(counting), "_counted"),
        *_prefix_sums(axis.name, parent.size.expr, dtype),
    )
    later = later_slot(state, array, parent=after, dtype=dtype)
    taken = take_next_from(axis.name, fiber=after, dtype=dtype)
    elements = ElementBindings(stmts=taken.stmts, starts=starts, later=later)
    return CountedSlot(taken.value, elements, storage)


def _prefix_sums(axis_name: str, fibers: Expr, dtype: str) -> list[Stmt]:
    """Return the statements that store the first slots of fibers over their numbers of elements."""
    total, next_slots = f"SUM_{axis_name}", next_array(axis_name)
    fiber, count = index_var(f"f_{axis_name}"), index_var(f"count_{axis_name}")
    after = add(fiber, ONE)
    body: list[Stmt] = [
        let(count.name, load(next_slots, after, dtype)),
        store(next_slots, after, load_local(total), dtype),
        store_local(total, add(load_local(total), count)),
    ]
    return [*define_local(total, ZERO), loop(fiber.name, ZERO, fibers, body)]
