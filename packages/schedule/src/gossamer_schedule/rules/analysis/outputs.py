"""The output of an iteration: an assignment, or a reduction into an element that it may initialize."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import is_dense_root, is_full
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.conditions import in_range
from gossamer_ir.nodes import Binary, Expr, Function, Iteration, Load, SparseBuffer, Store
from gossamer_schedule.rules.analysis.iterations import axes_of, buffers_by_name, prover_in


def dense_buffer(function: Function, name: str) -> SparseBuffer | None:
    """Return the buffer of this name, if all its axes are dense and have no parent."""
    buffer = buffers_by_name(function).get(name)
    roots = {axis.name for axis in function.axes if is_dense_root(axis)}
    return buffer if buffer is not None and roots.issuperset(buffer.axes) else None


def reduced_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """Return the buffer of the one reduction or difference in the body, if it initializes and combines this
    element."""
    return accumulated_buffer(function, iteration, element=element) if iteration.init else None


def accumulated_buffer(
    function: Function, iteration: Iteration, *, element: tuple[str, ...]
) -> SparseBuffer | None:
    """Return the buffer of the one reduction or difference in the body, if it combines this element. Without
    an init it continues from the old value."""
    store = only_store(iteration)
    if store is None or not _accumulates(store):
        return None
    if store.indices != tuple(index_var(name) for name in element):
        return None
    if not is_within(function, iteration, store):
        return None
    return buffers_by_name(function).get(store.buffer)


def only_store(iteration: Iteration) -> Store | None:
    """Return the statement of an iteration that has one, if it is a store, into the element of the init if
    there is an init."""
    if len(iteration.body) != 1 or len(iteration.init) > 1:
        return None
    store = iteration.body[0]
    return store if isinstance(store, Store) and _initializes(iteration, store) else None


def _initializes(iteration: Iteration, store: Store) -> bool:
    return all(
        isinstance(init, Store) and (init.buffer, init.indices) == (store.buffer, store.indices)
        for init in iteration.init
    )


def is_within(
    function: Function, iteration: Iteration, store: Store, *, where: Expr | None = None
) -> bool:
    """Return whether an iteration without init only continues from elements that exist: the indices of its
    output are proved to be in range, `where` a condition holds. With an init, the element is stored in any
    case."""
    if iteration.init:
        return True
    prover = prover_in(function, iteration)
    if where is not None:
        prover.assume(where)
    lengths = {axis.name: axis.length for axis in function.axes}
    buffer = buffers_by_name(function).get(store.buffer)
    stored = zip(store.indices, () if buffer is None else buffer.axes, strict=False)
    return all(
        prover.proves(condition) for at, name in stored for condition in in_range(at, lengths[name])
    )


def _accumulates(store: Store) -> bool:
    """Return whether a store reduces into an element, or subtracts from it, a value that does not depend on
    its buffer."""
    value = store.value
    if isinstance(value, Binary) and value.op == "sub" and isinstance(value.lhs, Load):
        store = replace(store, value=replace(value, op="add"))
        # `x = x - value` is a sum of negative terms; `x = value - x` is not.
        if value.lhs.buffer != store.buffer:
            return False
    return match_reduction(store) is not None


def has_rows_and_init(function: Function, iteration: Iteration) -> bool:
    """Return whether the first iterator is the row of the output, and the output is initialized."""
    row = axes_of(function, iteration)[0]
    return is_full(row) and integer_value(row.length) != 1 and bool(iteration.init)


def may_reassociate(iteration: Iteration) -> bool:
    """Return whether lanes may hold partial results: of a sum, but not of differences."""
    return all(isinstance(stmt, Store) and match_reduction(stmt) for stmt in iteration.body)


def assigned_store(iteration: Iteration) -> Store | None:
    """Return the statement of an iteration that is one unconditional assignment to the element at its
    variables; None for any other iteration."""
    if set(iteration.kinds) != {"S"} or iteration.init or len(iteration.body) != 1:
        return None
    store = iteration.body[0]
    if not isinstance(store, Store) or store.predicate is not None:
        return None
    return store if store.indices == tuple(map(index_var, iteration.vars)) else None
