"""Bind the slots of elements along axes, for the kernels of later axes and the last one."""

from __future__ import annotations

import numpy as np

from gossamer_formats.conversion.axes.target_axes import AxisSlot, TargetAxes
from gossamer_formats.conversion.kernels.shared_arguments import Size
from gossamer_formats.conversion.kernels.statements import digits, let, load, store
from gossamer_formats.conversion.recording.branch import RecordedValue
from gossamer_formats.conversion.target.dtypes import native_index_dtype
from gossamer_formats.storage import Array
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.nodes import Axis, Const, Expr, Var


def bind_slot(state: TargetAxes, axis: Axis, found: AxisSlot) -> None:
    """Bind the slot of an axis."""
    slot = found.slot
    if not isinstance(slot, Var | Const):
        slot = index_var(f"t_{axis.name}")
        state.bindings.append(let(slot.name, found.slot))
    state.axis_slots[axis.name] = AxisSlot(slot, found.size)


def bind_value_slot(
    state: TargetAxes, axis: Axis, slot: Expr, count: int | RecordedValue, size: Expr | None = None
) -> None:
    """Bind the slot of an axis that the values of the elements have as well."""
    found = state.arguments.integer(f"N_{axis.name}", count) if size is None else Size(size, count)
    bind_slot(state, axis, AxisSlot(slot, found))
    state.value_slot = state.axis_slots[axis.name]


def slot_within(
    state: TargetAxes, name: str, outer: AxisSlot, position: Expr, width: Size
) -> AxisSlot:
    """Return the slot at a position in a fiber of fixed width; `name` is that of the number of all slots."""
    if width.value == 1:
        return outer
    count = state.arguments.product(name, outer.size, width)
    return AxisSlot(digits(outer.slot, width.expr, position), count)


def take_next(state: TargetAxes, name: str, fiber: AxisSlot, starts: RecordedValue) -> Expr:
    """Bind an index that counts the elements of a fiber from its start, and return it."""
    # The last fiber begins last.
    dtype = state.recorder.decide(_counting_dtype, starts, state.source.value_count)
    counting = state.recorder.compute(np.ndarray.astype, starts, dtype)
    state.arguments.array(f"NEXT_{name}", counting, dtype, fiber.size.expr)
    return take_next_from(state, name, fiber, dtype)


def take_next_from(state: TargetAxes, name: str, fiber: AxisSlot, dtype: str) -> Expr:
    """Bind an index that counts the elements of a fiber, from the array of those that are next."""
    array, at, taken = f"NEXT_{name}", index_var(f"at_{name}"), index_var(f"r_{name}")
    state.bindings += [
        let(at.name, fiber.slot),
        let(taken.name, load(array, at, dtype)),
        store(array, at, add(taken, ONE), dtype),
    ]
    return taken


def _counting_dtype(starts: Array, count: int) -> str:
    return native_index_dtype((int(starts[-1]) if starts.size else 0) + count)
