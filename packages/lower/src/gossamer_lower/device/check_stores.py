"""Refuses stores of several threads to one element that are not reductions over them."""

from __future__ import annotations

from collections.abc import Mapping, Set

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import For, Function, Let, Load, Node, Stmt, Store
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import allocation_of
from gossamer_ir.traversal.walk import collect, stmts


def check_stores(function: Function) -> None:
    """Raise `UnsupportedError` (`lower.check_stores.reduction`) for a kernel in which the threads of a loop
    store to one element of global or shared memory, `lower.check_stores.shared` for shared memory that each
    thread would allocate.

    Reductions over threads have been lowered before.
    """
    every = tuple(stmts(function.body))
    scopes = {buffer.name: buffer.scope for buffer in allocations(every)}
    lets = {stmt.var.name: stmt for stmt in every if isinstance(stmt, Let)}
    for stmt in function.body:
        _check_stmt(stmt, {}, scopes=scopes, lets=lets, name=function.name)


def _check_stmt(
    stmt: Stmt,
    threads: Mapping[str, str],
    *,
    scopes: Mapping[str, str],
    lets: Mapping[str, Let],
    name: str,
) -> None:
    if isinstance(stmt, For) and stmt.thread is not None and integer_value(stmt.extent) != 1:
        threads = {**threads, stmt.var: stmt.thread}
    _require_one_for_block(stmt, threads, name=name)
    effects = effects_of(stmt)
    for write in effects.writes:
        if isinstance(write, Store) and scopes.get(write.buffer, "shared") == "shared":
            _require_own_element(write, threads, scopes=scopes, lets=lets, name=name)
    for body in effects.bodies:
        # A condition on the number of a thread selects the one that stores.
        selecting = _dependences(*body.conditions, lets=lets)
        selected = {var: axis for var, axis in threads.items() if var not in selecting}
        for inner in body.stmts:
            _check_stmt(inner, selected, scopes=scopes, lets=lets, name=name)


def _require_one_for_block(stmt: Stmt, threads: Mapping[str, str], *, name: str) -> None:
    """Refuse shared memory of a thread: all threads of a block would have the same."""
    buffer = allocation_of(stmt)
    around = [var for var, axis in threads.items() if axis.startswith("threadIdx")]
    if buffer is not None and buffer.scope == "shared" and around:
        raise UnsupportedError(
            "lower.check_stores.shared",
            f"'{name}' allocates '{buffer.name}', memory of a block, in the loop '{around[0]}' over the "
            "block's threads.",
            hint="Allocate it outside of the loop, or give it the scope 'local'.",
        )


def _require_own_element(
    store: Store,
    threads: Mapping[str, str],
    *,
    scopes: Mapping[str, str],
    lets: Mapping[str, Let],
    name: str,
) -> None:
    used = [*store.indices, *([store.predicate] if store.predicate is not None else [])]
    names = _dependences(*used, lets=lets)
    reads = collect(Load, *used, *(lets[var].value for var in names if var in lets))
    # What a thread keeps for itself may be computed from its number.
    if any(scopes.get(load.buffer, "shared") != "shared" for load in reads):
        return
    # Each block has its own shared memory.
    kinds = ("threadIdx",) if store.buffer in scopes else ("threadIdx", "blockIdx")
    shared = [var for var, axis in threads.items() if var not in names and axis.startswith(kinds)]
    if shared:
        raise UnsupportedError(
            "lower.check_stores.reduction",
            f"The threads of loop '{shared[0]}' of '{name}' store to one element of '{store.buffer}', and "
            "do more than to combine values there.",
            hint="Bind a loop that selects the element, or separate the reduction from other statements.",
        )


def _dependences(*nodes: Node, lets: Mapping[str, Let]) -> Set[str]:
    """Return the variables in expressions, and in the values of lets that they use."""
    names: set[str] = set()
    pending = list(free_vars(*nodes))
    while pending:
        var = pending.pop()
        if var not in names:
            names.add(var)
            pending += free_vars(lets[var].value) if var in lets else ()
    return names
