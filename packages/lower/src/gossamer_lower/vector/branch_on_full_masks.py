"""Code without masks for vectors whose lanes are all enabled, where that is the usual case.

A mask that tests the indices of gathers or scatters, such as those of padded slots, disables few lanes. A
gather of all lanes is cheaper than a masked one on CPUs that load its elements one by one.
"""

from __future__ import annotations

from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.conditions import TRUE
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Broadcast,
    Expr,
    Function,
    If,
    LaneReduce,
    Lanes,
    Let,
    Load,
    Module,
    Ramp,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.statement_queries import names_after
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import Stmts, with_bodies, with_body


@lowering_pass(
    takes=("loop",),
    acts_on="masks in variables",
    without=("blocks",),
    after={"hoist_invariant_loads": "a load that both copies have is hoisted once"},
    before={"hoist_searches": "each copy gets searches of its own"},
)
def branch_on_full_masks(module: Module) -> Module:
    """Test whether all lanes are enabled, and run code without the mask if they are.

    Masks are those that vectorization bound to a variable because they read memory. One is tested if the
    statements after it gather or scatter under it, with indices from an array that the mask reads.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n // 4):
    ...     found: T.boolx4 = P[T.ramp(4 * i, 1, 4)] < T.broadcast(n, 4)
    ...     Y[T.ramp(4 * i, 1, 4)] = T.load(
    ...         X, P[T.ramp(4 * i, 1, 4)], predicate=found, passthrough=T.broadcast(0.0, 4))
    ... ''')
    >>> print(body_text(branch_on_full_masks(before)))
    for i in T.serial(n // 4):
        found: T.boolx4 = P[T.ramp(4 * i, 1, 4)] < T.broadcast(n, 4)
        if T.lane_reduce("and", found):
            Y[T.ramp(4 * i, 1, 4)] = X[P[T.ramp(4 * i, 1, 4)]]
        else:
            Y[T.ramp(4 * i, 1, 4)] = T.load(X, P[T.ramp(4 * i, 1, 4)], predicate=found, \
passthrough=T.broadcast(0.0, 4))
    """
    return map_functions(module, _branch_in_function)


# Other statements: bind no mask.
def _branch_in_function(function: Function) -> Function:
    if not {Ramp, Let} <= types_in(function):
        return function
    return with_body(function, _body(function.body, namer_of(function)))


# Other statements: those between a mask and its last use are copied into both branches.
def _body(body: Stmts, namer: Namer) -> Stmts:
    visited = tuple(with_bodies(stmt, lambda inner: _body(inner, namer)) for stmt in body)
    for number, stmt in enumerate(visited):
        if isinstance(stmt, Let) and _is_of_indices(stmt, rest := visited[number + 1 :]):
            end = _end_of_use(stmt.var, rest)
            # Only the statements under the mask: a copy of all others for each of several masks would double
            # the code each time.
            after = _body(rest[end:], namer)
            return (*visited[: number + 1], _branch(stmt.var, rest[:end], namer), *after)
    return visited


def _end_of_use(mask: Var, rest: Stmts) -> int:
    """Return the number of statements up to the last that depends on a mask, or on a variable or buffer that
    one of them declares."""
    used, end = {mask.name}, 0
    for number, stmt in enumerate(rest):
        if used & {*free_vars(stmt), *buffers_accessed(stmt)}:
            end = number + 1
            used.update(*map(names_after, rest[:end]))
    return end


def _is_of_indices(let: Let, rest: Stmts) -> bool:
    """Return whether a let binds a mask that tests the indices of gathers or scatters under it."""
    dtype = DType.parse(let.var.dtype)
    if dtype.scalar != "bool" or not dtype.is_vector:
        return False
    tested = buffers_read(let.value)
    return any(
        let.var.name in free_vars(access.predicate) and bool(tested & _index_arrays(access))
        for access in collect((Load, Store), *rest)
        if access.predicate is not None
    )


def _index_arrays(access: Load | Store) -> set[str]:
    """Return the arrays with the indices of a gather or scatter."""
    return {
        load.buffer
        for index in access.indices
        for load in collect(Load, index)
        if DType.parse(load.dtype).is_vector
    }


def _branch(mask: Var, rest: Stmts, namer: Namer) -> Stmt:
    dtype = DType.parse(mask.dtype)
    full: Expr = Broadcast(TRUE, Lanes(dtype.lanes, dtype.scalable))
    unmasked = simplify_body(substitute_body(rest, {mask.name: full}))
    return If(LaneReduce("and", mask), unmasked, with_fresh_names(rest, namer))
