"""Unswitches vectorized loops on uniform conditions: those with the same value in all lanes.

The bound of a row, for example, does not depend on the lane. As an `If` around the vector code, it also
protects accesses that are the same in all lanes, and the remaining masks compare one position with one bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import reads_in
from gossamer_ir.analysis.proofs.program_point import is_speculatable_before
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Expr, For, Function, If, IfThenElse, Let, Module, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import map_stmts, with_bodies, with_body, with_branches


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    before={
        "insert_bounds_checks": "an access that all lanes share is refused under a condition of single lanes",
        "vectorize_loops": "vectors turn the conditions that are left into masks",
    },
)
def unswitch_uniform_conditions(module: Module) -> Module:
    """Move the parts of conditions that are uniform across lanes out of vectorized loops.

    They move before the vectorized loop, and before the serial and unrolled loops around it that contain
    nothing else and leave them invariant. A part that reads memory moves only out of loops with at least
    one iteration; otherwise it stays inside, before the part that depends on the lane. A loop that has no
    iteration unless a condition holds runs under that condition, and no longer tests it inside.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     for l in T.vectorized(4):
    ...         if i < n - 4 and P[i] < n and l < P[0]:
    ...             Y[l] = X[i]
    ... ''')
    >>> print(body_text(unswitch_uniform_conditions(before)))
    for i in T.serial(n):
        if i < n - 4 and P[i] < n:
            for l in T.vectorized(4):
                if l < P[0]:
                    Y[l] = X[i]
    """
    return map_functions(module, _unswitch_function)


def _unswitch_function(function: Function) -> Function:
    return with_body(function, _body(function.body, function))


def _body(body: tuple[Stmt, ...], function: Function) -> tuple[Stmt, ...]:
    return map_stmts(body, lambda stmt: (_stmt(stmt, function),))


def _stmt(stmt: Stmt, function: Function) -> Stmt:
    match stmt:
        case For(kind="vectorized"):
            lanes = {stmt.var}
            return _unswitched_loop(with_body(stmt, _split_body(stmt.body, lanes)), function)
        case For():
            loop = with_body(stmt, _body(stmt.body, function))
            if stmt.kind not in ("serial", "unrolled"):
                return loop
            return _with_bound_apart(
                _unswitched_loop(loop, function) if _is_around_vectors(loop) else loop
            )
    return with_bodies(stmt, lambda body: _body(body, function))


def _is_around_vectors(loop: For) -> bool:
    """Return whether the body of a loop is just a vectorized loop under a condition."""
    match loop.body:
        case (If(then_body=(For(kind="vectorized"),), else_body=()),):
            return True
    return False


def _unswitched_loop(loop: For, function: Function) -> Stmt:
    """Return the loop, under the loop-invariant parts of the condition around its whole body."""
    match loop.body:
        case (If(else_body=()) as inner,):
            parts = list(conjuncts(inner.condition))
            # Each part on its own: `and` evaluates both operands, so none protects another one.
            moved = [
                part
                for part in parts
                if is_speculatable_before(part, loop, function, is_in_each=True)
            ]
            kept = [part for part in parts if part not in moved]
            if moved:
                body = _under(kept, inner.then_body)
                (unswitched,) = _under(moved, (replace(loop, body=body),))
                return unswitched
    return loop


def _with_bound_apart(stmt: Stmt) -> Stmt:
    """Return a loop that has no iteration unless a condition holds, under that condition."""
    match stmt:
        case For(extent=IfThenElse() as extent) if integer_value(extent.if_false) == 0:
            loop = replace(stmt, extent=extent.if_true)
            return If(extent.condition, _body_where(extent.condition, (loop,)))
    return stmt


def _body_where(condition: Expr, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the body of a condition without other tests of it."""
    # Memory may change between two tests; variables do not.
    if reads_in(condition):
        return body
    return map_stmts(body, lambda stmt: _stmt_where(condition, stmt))


def _stmt_where(condition: Expr, stmt: Stmt) -> tuple[Stmt, ...]:
    stmt = with_bodies(stmt, lambda body: _body_where(condition, body))
    match stmt:
        case If(else_body=()):
            parts = list(conjuncts(stmt.condition))
            if condition in parts:
                return _under([part for part in parts if part != condition], stmt.then_body)
    return (stmt,)


# --- inside a vectorized loop


def _split_body(body: tuple[Stmt, ...], lanes: set[str]) -> tuple[Stmt, ...]:
    """Return the statements with each condition split into a uniform part and a part that depends on the
    lane."""
    result: list[Stmt] = []
    for stmt in body:
        # A let of a lane-dependent value depends on the lane itself, also in conditions after it.
        if isinstance(stmt, Let) and free_vars(stmt.value) & lanes:
            lanes = {*lanes, stmt.var.name}
        result.append(_split(stmt, lanes))
    return tuple(result)


def _split(stmt: Stmt, lanes: set[str]) -> Stmt:
    match stmt:
        case For():
            return with_body(stmt, _split_body(stmt.body, lanes))
        case If(else_body=()):
            parts = list(conjuncts(stmt.condition))
            shared = [part for part in parts if not free_vars(part) & lanes]
            varying = [part for part in parts if free_vars(part) & lanes]
            body = _split_body(stmt.then_body, lanes)
            if shared:
                (unswitched,) = _under(shared, _under(varying, body))
                return unswitched
            return with_branches(stmt, body, ())
        case If():
            return with_bodies(stmt, lambda inner: _split_body(inner, lanes))
    return stmt


def _under(parts: Sequence[Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    condition = conjunction(*parts)
    return body if condition is None else (If(condition, body),)
