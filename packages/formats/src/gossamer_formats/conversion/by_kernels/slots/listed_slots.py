"""The slots of all elements in an array, by value index.

Slots are often counted, as the next one of a column: then the elements depend on each other, and so would
the stores, which take most of the time. Slots in an array, of which no two are equal, are loops of
independent iterations, for all threads.
"""

from __future__ import annotations

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import LaterSlot
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument
from gossamer_formats.conversion.by_kernels.kernels.statements import compare, load, store
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.slots.later_slots import (
    ELEMENTS_AHEAD,
    are_fetched_early,
)
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_formats.conversion.destination.dtypes import native_index_dtype
from gossamer_formats.memory.new_arrays import ArrayKind, new_arrays
from gossamer_ir.core.build import add, index
from gossamer_ir.nodes import Distinct, Expr, Store
from gossamer_support.arrays import Array


def new_slots(state: BuildState, slots: int | RecordedValue) -> ArrayArgument:
    """Return an array for the slot of each value of the source; each must be an element.

    `slots` is the number of slots.
    """
    recorder, size = state.recorder, state.loop.size
    dtype = recorder.decide(native_index_dtype, slots)
    return ArrayArgument(recorder.compute(_new_array, size.value, dtype), dtype, (size.expr,))


def _new_array(size: int, dtype: str) -> Array:
    (array,) = new_arrays((ArrayKind(dtype, is_zero=False),), size)
    return array


def store_slot(name: str, slot: Expr, slots: ArrayArgument) -> Store:
    """Return the statement that stores the slot of an element."""
    return store(name, VALUE_INDEX, slot, slots.dtype)


def complete_slots(name: str, slots: ArrayArgument) -> ArrayArgument:
    """Return the array after each element has stored its slot, which it shares with no other."""
    return slots._replace(facts=(Distinct(name),))


def load_slot(name: str, slots: ArrayArgument) -> Expr:
    """Return the slot of an element."""
    return load(name, VALUE_INDEX, slots.dtype)


def later_listed_slot(state: BuildState, name: str, slots: ArrayArgument) -> LaterSlot | None:
    """Return the slot of a later element; None for few elements, and unless they are visited in the order of
    their values."""
    if not state.loop.counts_values or not are_fetched_early(state):
        return None
    later = add(VALUE_INDEX, index(ELEMENTS_AHEAD))
    condition = compare("lt", later, state.loop.size.expr)
    return LaterSlot(condition, load(name, later, slots.dtype))
