"""Slots of fibers that are counted by the kernel that fills them."""

from __future__ import annotations

from gossamer_formats.conversion.axes.bind_slots import take_next_from
from gossamer_formats.conversion.axes.fiber_offsets import no_ends, set_total
from gossamer_formats.conversion.axes.later_slots import later_slot
from gossamer_formats.conversion.axes.tables import require_table
from gossamer_formats.conversion.axes.target_axes import AxisSlot, IndexArray, TargetAxes
from gossamer_formats.conversion.kernels.loop_nest import renamed
from gossamer_formats.conversion.kernels.statements import (
    cell,
    get_cell,
    increment,
    let,
    load,
    loop,
    set_cell,
    store,
)
from gossamer_formats.conversion.target.dtypes import native_index_dtype
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, Stmt


def take_counted(state: TargetAxes, axis: Axis, indptr: Indptr, parent: AxisSlot) -> Expr:
    """Bind the slot of an element, if every value of the source is one: the fibers are counted before the
    loops of the last kernel, which also finds the offsets.

    The offset after that of a fiber is its number of elements at first, then its next slot, and in the end
    the first slot of the next fiber.
    """
    require_table(state, parent.size.value)
    recorder, name = state.recorder, axis.name
    dtype = recorder.decide(native_index_dtype, state.source.value_count)
    offsets = recorder.compute(no_ends, parent.size.value, dtype)
    state.arguments.array(f"NEXT_{name}", offsets, dtype, add(parent.size.expr, ONE))
    state.arrays[indptr.handle] = IndexArray(offsets, dtype, state.source.value_count)
    set_total(state, indptr, state.source.value_count)
    after = parent._replace(slot=add(parent.slot, ONE))
    counted = [*state.bindings, increment(f"NEXT_{name}", after.slot, dtype)]
    state.starts += renamed(state.loop.around(counted), "_counted")
    state.starts += _prefix_sums(name, parent.size.expr, dtype)
    state.later = later_slot(state, f"NEXT_{name}", after, dtype)
    return take_next_from(state, name, after, dtype)


def _prefix_sums(name: str, fibers: Expr, dtype: str) -> list[Stmt]:
    """Return the statements that store the first slots of fibers in place of their numbers of elements."""
    total, next_slots = f"SUM_{name}", f"NEXT_{name}"
    fiber, count = index_var(f"f_{name}"), index_var(f"count_{name}")
    after = add(fiber, ONE)
    body: list[Stmt] = [
        let(count.name, load(next_slots, after, dtype)),
        store(next_slots, after, get_cell(total), dtype),
        set_cell(total, add(get_cell(total), count)),
    ]
    return [*cell(total, ZERO), loop(fiber.name, ZERO, fibers, body)]
