"""Slots of fibers that are counted by the program that fills them."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.compiled.axes.later_slots import later_slot
from gossamer_formats.conversion.compiled.axes.places import set_total, take_numbers_from
from gossamer_formats.conversion.compiled.axes.tables import require_table
from gossamer_formats.conversion.compiled.axes.target_axes import IndexArray, SlotPlace, TargetAxes
from gossamer_formats.conversion.compiled.programs.loop_nest import renamed
from gossamer_formats.conversion.compiled.programs.statements import (
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
from gossamer_formats.storage import Array
from gossamer_ir.core.axis_kinds import Indptr
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, Stmt


def take_counted(state: TargetAxes, axis: Axis, indptr: Indptr, parent: SlotPlace) -> Expr:
    """Bind the slot of an element, if every value of the source is one: the fibers are counted before the
    loops of the last program, which also finds the offsets."""
    require_table(state, parent.size.value)
    recorder, arguments, name = state.recorder, state.arguments, axis.name
    dtype = recorder.decide(native_index_dtype, state.source.value_count)
    offsets = recorder.compute(_new_offsets, parent.size.value, dtype)
    cursors = recorder.compute(np.zeros, parent.size.value, dtype)
    arguments.array(f"OFFSETS_{name}", offsets, dtype, add(parent.size.expr, ONE))
    arguments.array(f"CURSOR_{name}", cursors, dtype, parent.size.expr)
    state.arrays[indptr.handle] = IndexArray(offsets, dtype, state.source.value_count)
    set_total(state, indptr, state.source.value_count)
    counted = [*state.bindings, increment(f"CURSOR_{name}", parent.slot, dtype)]
    state.starts += renamed(state.loop.around(counted), "_counted")
    state.starts += _prefix_sums(name, parent.size.expr, dtype)
    state.later = later_slot(state, f"CURSOR_{name}", parent, dtype)
    return take_numbers_from(state, name, parent, dtype)


def _new_offsets(fibers: int, dtype: str) -> Array:
    return np.empty(fibers + 1, dtype)


def _prefix_sums(name: str, fibers: Expr, dtype: str) -> list[Stmt]:
    """Return the statements that store the offsets of fibers, also in place of the counts."""
    total, offsets, cursors = f"SUM_{name}", f"OFFSETS_{name}", f"CURSOR_{name}"
    fiber, count = index_var(f"f_{name}"), index_var(f"count_{name}")
    body: list[Stmt] = [
        let(count.name, load(cursors, fiber, dtype)),
        store(cursors, fiber, get_cell(total), dtype),
        store(offsets, fiber, get_cell(total), dtype),
        set_cell(total, add(get_cell(total), count)),
    ]
    return [
        *cell(total, ZERO),
        loop(fiber.name, ZERO, fibers, body),
        store(offsets, fibers, get_cell(total), dtype),
    ]
