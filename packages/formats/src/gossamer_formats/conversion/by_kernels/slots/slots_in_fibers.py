"""An element's slot of an axis: at a position of its fiber, or the next one that its fiber has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import Size
from gossamer_formats.conversion.by_kernels.kernels.statements import digits, let, load, store
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.destination.dtypes import native_index_dtype
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.nodes import Axis, Binary, Expr, Stmt, Var
from gossamer_ir.traversal.statement_queries import values_bound_in
from gossamer_support.arrays import Array


def sized_slot(state: BuildState, axis: Axis, slot: Expr, count: int | RecordedValue) -> AxisSlot:
    """Return a slot of an axis that has `count` slots in all fibers, which becomes an argument."""
    return AxisSlot(slot, state.arguments.integer(f"N_{axis.name}", count))


def slot_within(
    state: BuildState, name: str, *, outer: AxisSlot, position: Expr, width: Size
) -> AxisSlot:
    """Return the slot at a position in a fiber of fixed width; `name` is that of the number of all slots."""
    if width.value == 1:
        return outer
    count = state.arguments.product(name, outer.size, width)
    number = _number_of_digits(state, outer.slot, position, width.expr)
    if number is None:
        number = digits(outer.slot, width.expr, position)
    return AxisSlot(number, count)


# Other expressions and operations: nothing is concluded from them.
def _number_of_digits(state: BuildState, outer: Expr, position: Expr, width: Expr) -> Expr | None:
    """Return the number whose quotient and remainder by `width` are `outer` and `position`; None if they are
    not those of one number.

    The rank of a row in slices of rows is its slot: it is not divided and put together again, and a table of
    distinct ranks has a slot of its own for each row.
    """
    bound = values_bound_in(state.elements.stmts)
    quotient = bound.get(outer.name) if isinstance(outer, Var) else outer
    match quotient, position:
        case Binary("floordiv", first, by), Binary("floormod", second, other):
            return first if first == second and by == other == width else None
    return None


class NextInFiber(NamedTuple):
    """An index that counts the elements of each fiber, and the statements that bind it."""

    value: Expr
    stmts: tuple[Stmt, ...]


def take_next(
    state: BuildState, name: str, *, fiber: AxisSlot, starts: RecordedValue
) -> NextInFiber:
    """Return an index that counts the elements of a fiber from its start."""
    # The last fiber begins last.
    dtype = state.recorder.decide(_counting_dtype, starts, state.source.value_count)
    counting = state.recorder.compute(np.ndarray.astype, starts, dtype)
    state.arguments.array(next_array(name), counting, dtype, fiber.size.expr)
    return take_next_from(name, fiber=fiber, dtype=dtype)


def take_next_from(name: str, *, fiber: AxisSlot, dtype: str) -> NextInFiber:
    """Return an index that counts the elements of a fiber, from the array of those that are next."""
    array, at, taken = next_array(name), index_var(f"at_{name}"), index_var(f"r_{name}")
    stmts = (
        let(at.name, fiber.slot),
        let(taken.name, load(array, at, dtype)),
        store(array, at, add(taken, ONE), dtype),
    )
    return NextInFiber(taken, stmts)


def next_array(axis_name: str) -> str:
    """Return the name of the array of the index that is next in each fiber of an axis.

    >>> next_array("J")
    'NEXT_J'
    """
    return f"NEXT_{axis_name}"


def _counting_dtype(starts: Array, count: int) -> str:
    return native_index_dtype((int(starts[-1]) if starts.size else 0) + count)
