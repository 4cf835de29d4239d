"""The loops that append elements to an axis, one by one or several at once."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.conversion.by_kernels.build_state.build_state import BuildState
from gossamer_formats.conversion.by_kernels.kernels.loop_nest import Tail, wrap_in_nest
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    let,
    load_local,
    select,
    store_local,
    when,
)
from gossamer_formats.conversion.by_kernels.kernels.vector_loop import VectorLoop, vector_loop
from gossamer_formats.conversion.by_kernels.source.element_loop import VALUE_INDEX
from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.nodes import Axis, Expr, Let, Stmt, Var
from gossamer_ir.traversal.substitute import substitute

TOTAL = "TOTAL"
"""The local variable with the number of elements so far."""


def append_loops(
    state: BuildState,
    axis: Axis,
    stores: Sequence[Stmt],
    tail: Tail | None,
    *,
    end: Expr | None = None,
) -> tuple[Stmt, ...]:
    """Return the loops that append elements; with `end`, in a range of slots after which those of other
    threads begin, and with all loops of the nest."""
    vectors = _in_vectors(state, axis, stores, tail)
    return vectors or one_by_one(state, axis, stores, tail, end=end)


def one_by_one(
    state: BuildState,
    axis: Axis,
    stores: Sequence[Stmt],
    tail: Tail | None,
    *,
    end: Expr | None = None,
) -> tuple[Stmt, ...]:
    """Return the loops that append one element at a time, as `append_loops` does; those without stores count
    the elements."""
    loop, slot = state.loop, _slot(axis)
    start = [*state.elements.stmts, let(slot.name, load_local(TOTAL))]
    if loop.condition is None or loop.solved is not None:
        # Most slots of a diagonal have no element: the branch is predicted, and nothing is stored for them.
        body = [*start, *stores, store_local(TOTAL, add(slot, ONE))]
        return loop.around(body, tail) if end is None else loop.around_all(body, tail)
    # Without a branch: an element that is not wanted is overwritten by the next one.
    kept = stores if end is None or not stores else [when(compare("lt", slot, end), stores)]
    next_slot = add(slot, select(loop.condition, ONE, ZERO))
    return wrap_in_nest(loop.nest, [*start, *kept, store_local(TOTAL, next_slot)], tail)


def _slot(axis: Axis) -> Var:
    return index_var(f"slot_{axis.name}")


def _in_vectors(
    state: BuildState, axis: Axis, stores: Sequence[Stmt], tail: Tail | None
) -> tuple[Stmt, ...] | None:
    """Return the loops that append several elements at once; None unless these elements are always in one
    fiber."""
    vectors = (
        vector_loop(state.loop.nest, state.elements.stmts) if state.loop.condition is None else None
    )
    if vectors is None or (tail is not None and tail.depth > vectors.depth):
        return None
    first = index_var(f"first_{axis.name}")
    # Sums instead of their names: the bounds of a sum with the variable are checked before the loop.
    values = {
        _slot(axis).name: add(first, index_var(vectors.loop.var)),
        "p": _bound_value_index(vectors),
    }
    body: list[Stmt] = [
        let(first.name, load_local(TOTAL)),
        vectors.with_body([substitute(element_store, values) for element_store in stores]),
        store_local(TOTAL, add(first, vectors.loop.extent)),
    ]
    return wrap_in_nest(vectors.outer, body, tail)


def _bound_value_index(vectors: VectorLoop) -> Expr:
    """Return what the value index is bound to."""
    bindings = [stmt for stmt in (*vectors.outer, *vectors.bindings) if isinstance(stmt, Let)]
    return next(binding.value for binding in bindings if binding.var == VALUE_INDEX)
