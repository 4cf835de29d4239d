"""The iterations of an adjoint: each adds to the gradients of elements that a store reads."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gossamer_ir.core.build import index_var, zero_of
from gossamer_ir.core.conditions import short_circuit_and
from gossamer_ir.nodes import (
    Binary,
    Const,
    Expr,
    If,
    Iteration,
    Load,
    OverAxis,
    SparseBuffer,
    Stmt,
    Store,
)
from gossamer_ir.transform.differentiation.store_sites import (
    StoreSite,
    visits_all_elements,
    visits_once,
)
from gossamer_ir.traversal.free_vars import free_vars


def accumulation(
    site: StoreSite,
    buffer: SparseBuffer,
    indices: tuple[Expr, ...],
    value: Expr,
    *,
    conditions: tuple[Expr, ...] = (),
    is_first: bool = False,
) -> Stmt:
    """Return the iteration of a store that adds a value to elements of another buffer instead.

    An axis whose variable is in no index is reduced. The first iteration that adds to a buffer initializes
    what it visits; if it visits each element once, it assigns. One that scatters to a buffer that is passed
    relies on the zeros in it.
    """
    old = Load(buffer.name, indices, buffer.dtype)
    update = Store(buffer.name, indices, Binary("add", old, value))
    init: tuple[Stmt, ...] = ()
    if is_first and not conditions:
        if not site.axes or (
            visits_all_elements(site, buffer, indices) and visits_once(site, indices)
        ):
            update = replace(update, value=value)
        elif buffer.handle is None or not _scatters(site, indices):
            init = (replace(update, value=zero_of(buffer.dtype)),)
    name = f"{site.name}_{buffer.name}"
    return iterated_store(replace(site, name=name), update, init=init, conditions=conditions)


def _scatters(site: StoreSite, indices: tuple[Expr, ...]) -> bool:
    """Return whether the outermost axis of a store is reduced and an inner one is not: each of its iterations
    adds to elements that others add to. An init would visit them all in loops of its own, and rules for
    updates in any order, which run features in parallel, match programs without one."""
    used = {name for index in indices for name in free_vars(index)}
    return site.vars[0] not in used and not used.isdisjoint(site.vars)


def iterated_store(
    site: StoreSite,
    store: Store,
    *,
    init: tuple[Stmt, ...] = (),
    conditions: Iterable[Expr] = (),
) -> Stmt:
    """Return an iteration over the axes of a store with another one in its body, under conditions of which
    each is evaluated only if the earlier ones hold."""
    condition: Expr | None = None
    for part in conditions:
        condition = short_circuit_and(condition, part)
    stmt: Stmt = store if condition is None else If(condition, (store,))
    if not site.axes:
        return stmt
    used = {name for index in store.indices for name in free_vars(index)}
    kinds = "".join("S" if var in used else "R" for var in site.vars)
    return Iteration(site.name, site.axes, kinds, site.vars, (stmt,), init)


def assignment(buffer: SparseBuffer, value: Const | str) -> Stmt:
    """Return the iteration that assigns a constant, or the elements of the buffer of a name, to all elements
    of a buffer."""
    vars = tuple(name.lower() for name in buffer.axes)
    indices = tuple(index_var(name) for name in vars)
    stored = value if isinstance(value, Const) else Load(value, indices, buffer.dtype)
    return Iteration(
        name=f"set_{buffer.name}",
        axes=tuple(OverAxis(name) for name in buffer.axes),
        kinds="S" * len(vars),
        vars=vars,
        body=(Store(buffer.name, indices, stored),),
    )
