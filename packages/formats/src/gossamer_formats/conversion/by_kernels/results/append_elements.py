"""Kernels that append elements to an axis, and count its slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from gossamer_formats.conversion.by_kernels.build_state.axis_queries import has_full_ancestors
from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.build_state.built_storage import (
    AppendedAxis,
    BuiltStorage,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import AxisSlot
from gossamer_formats.conversion.by_kernels.fibers.fiber_offsets import (
    ENDS,
    fiber_offsets,
    list_size,
    new_ends,
    offsets_of_ends,
    store_end,
)
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import Tail, depth_of_loops, hoist
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    define_local,
    load_local,
    store,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import first_of
from gossamer_formats.conversion.by_kernels.recording.branch import RecordedValue
from gossamer_formats.conversion.by_kernels.results.append_in_parallel import append_in_parallel
from gossamer_formats.conversion.by_kernels.results.append_loops import TOTAL, append_loops
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, For, Stmt, Store


class AppendedElements(NamedTuple):
    """The number of elements that were appended, and what their slots add to the storage."""

    total: RecordedValue
    storage: BuiltStorage


def append_elements(
    state: BuildState,
    appended: AppendedAxis,
    *,
    stores: Sequence[Stmt],
    arguments: Mapping[str, ArrayArgument],
) -> AppendedElements:
    """Run the last kernel, which appends elements to an axis."""
    axis, indptr, parent = appended
    recorder = state.recorder
    totals = recorder.compute(np.zeros, 1, np.int64)
    all_arguments = {**arguments, "TOTALS": ArrayArgument(totals, "int64", (ONE,))}
    if indptr is None:
        _run(state, axis, stores=stores, arguments=all_arguments, tail=None)
        total = recorder.compute(first_of, totals)
        return AppendedElements(total, BuiltStorage(slot_counts=list_size(axis, total)))
    # Ends, not lengths: they are the offsets of the next fibers already if each fiber stores one.
    ends = new_ends(state, parent)
    tail = _tail(state, axis, store_end(parent.slot, load_local(TOTAL), ends.dtype))
    _run(state, axis, stores=stores, arguments={**all_arguments, ENDS: ends}, tail=tail)
    total = recorder.compute(first_of, totals)
    offsets = ends.array
    if not _ends_each_fiber(state, parent, tail):
        offsets = recorder.compute(offsets_of_ends, offsets)
    storage = fiber_offsets(state, indptr, offsets=offsets, dtype=ends.dtype).storage
    return AppendedElements(total, storage)


def _run(
    state: BuildState,
    axis: Axis,
    *,
    stores: Sequence[Stmt],
    arguments: Mapping[str, ArrayArgument],
    tail: Tail | None,
) -> None:
    if append_in_parallel(state, axis, stores=stores, arguments=arguments, tail=tail):
        return
    loops = append_loops(state, axis, stores, tail)
    starts = (*state.elements.starts, *define_local(TOTAL, ZERO))
    body = [*starts, *loops, store("TOTALS", ZERO, load_local(TOTAL))]
    run_kernel(state.recorder, body, {**state.arguments.by_name, **arguments})


def _tail(state: BuildState, axis: Axis, stmt: Store) -> Tail:
    """Return the statement that stores the end of a fiber, after as many inner loops as possible."""
    loop = state.loop
    innermost = depth_of_loops(loop.nest)
    tail = Tail(stmt, innermost)
    if has_full_ancestors(state, axis):
        tail = hoist(loop.nest, state.elements.stmts, stmt)
    if tail.depth < innermost:
        return tail
    # Only elements that are kept are known to be in order: another one may be in an earlier fiber.
    assert isinstance(tail.stmt, Store)
    return Tail(replace(tail.stmt, predicate=loop.condition), innermost)


def _ends_each_fiber(state: BuildState, parent: AxisSlot, tail: Tail) -> bool:
    """Return whether the end of each fiber is stored, also if it has no elements: after each iteration of a
    loop over all fibers."""
    match state.loop.nest:
        case (For(start=start, extent=extent) as outer, *_):
            fiber = index_var(outer.var)
            is_whole = start == ZERO and extent == parent.size.expr
            is_of_loop = tail.depth == 1 and _stores_always(tail.stmt, add(fiber, ONE))
            return is_whole and is_of_loop
    return False


def _stores_always(stmt: Stmt, at: Expr) -> bool:
    """Return whether a statement stores at an index, without a condition."""
    return isinstance(stmt, Store) and stmt.indices == (at,) and stmt.predicate is None
