"""Queries by the table of statement kinds: what one statement binds, allocates, checks and repeats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gossamer_ir.core.expression_kinds import LAZY
from gossamer_ir.core.statement_kinds import STMT_KINDS, Body, ThreadEffects, effects_of, is_stmt
from gossamer_ir.nodes import Buffer, Expr, For, Node, Stmt, Var
from gossamer_ir.traversal.fields import LABEL_FIELDS, has_bodies
from gossamer_ir.traversal.walk import children, stmts


def body_in(stmt: Stmt, field: str) -> Body:
    """Return the body of a statement that one of its fields holds.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import If, Store, Unary
    >>> branch = If(index_var("c"), (), (Store("Y", (ZERO,), ONE),))
    >>> body_in(branch, "else_body").condition == Unary("not", index_var("c"))
    True
    """
    return next(body for body in effects_of(stmt).bodies if body.field == field)


def vars_bound(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables that a statement binds: in its bodies or, if it has none, in the rest of the
    enclosing body.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> vars_bound(For("i", ZERO, ONE, ()))
    ('i',)
    """
    return STMT_KINDS[type(stmt)].vars(stmt)


def values_bound(stmt: Stmt) -> Iterable[tuple[Var, Expr]]:
    """Return the variables of a let or a block, each with the expression that it is equal to.

    >>> from gossamer_ir.core.build import ONE, index_var
    >>> from gossamer_ir.nodes import Let
    >>> values_bound(Let(index_var("one"), ONE)) == ((index_var("one"), ONE),)
    True
    """
    return STMT_KINDS[type(stmt)].values(stmt)


def values_after(stmt: Stmt) -> Iterable[tuple[Var, Expr]]:
    """Return the `values_bound` of a statement that binds them for the statements after it, such as a let."""
    return () if has_bodies(type(stmt)) else values_bound(stmt)


def values_bound_in(body: Iterable[Stmt]) -> dict[str, Expr]:
    """Return the values of all lets and block variables in a body, by the names of the variables."""
    pairs = (pair for stmt in stmts(body) for pair in values_bound(stmt))
    return {var.name: value for var, value in pairs}


def loop_of(stmt: Stmt) -> For | None:
    """Return the loop over the values that the variable of a statement has in its body, if it is one."""
    loop = STMT_KINDS[type(stmt)].loop
    return None if loop is None else loop(stmt)


def allocation_of(stmt: Stmt) -> Buffer | None:
    """Return the buffer that a statement allocates for the statements after it."""
    field = STMT_KINDS[type(stmt)].allocates
    return None if field is None else getattr(stmt, field)


def condition_after(stmt: Stmt) -> Expr | None:
    """Return the condition that holds after a statement which stops the program otherwise."""
    condition = STMT_KINDS[type(stmt)].condition_after
    return None if condition is None else condition(stmt)


def threads_of(stmt: Stmt) -> ThreadEffects:
    """Return what a statement means for other threads.

    >>> from gossamer_ir.nodes import Barrier
    >>> threads_of(Barrier()).waits_for
    'block'
    """
    return STMT_KINDS[type(stmt)].threads


def exchanged_vars(body: Iterable[Stmt]) -> set[str]:
    """Return the variables in a body that have values of other threads."""
    return {name for stmt in stmts(body) if threads_of(stmt).exchanges for name in vars_bound(stmt)}


def while_body(stmt: Stmt) -> Body | None:
    """Return the body that a statement runs again as long as a condition holds, if it has one.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import If, While
    >>> while_body(While(index_var("c"), ())).condition == index_var("c")
    True
    >>> while_body(If(index_var("c"), ())) is None
    True
    """
    bodies = effects_of(stmt).bodies
    return next((body for body in bodies if body.repeats and body.condition is not None), None)


def defines_only(stmt: Stmt) -> bool:
    """Return whether all that a statement does is to define names for the statements after it, as a let and
    an allocation do."""
    return allocation_of(stmt) is not None or bool(values_after(stmt))


def names_bound(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables and buffers that a statement binds."""
    return (*vars_bound(stmt), *_allocated_name(stmt))


def names_after(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables and buffers that a statement binds for the statements after it.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import Let
    >>> names_after(Let(index_var("one"), ONE)), names_after(For("i", ZERO, ONE, ()))
    (('one',), ())
    """
    vars = () if has_bodies(type(stmt)) else vars_bound(stmt)
    return (*vars, *_allocated_name(stmt))


def _allocated_name(stmt: Stmt) -> tuple[str, ...]:
    buffer = allocation_of(stmt)
    return () if buffer is None else (buffer.name,)


def labels_of(stmt: Stmt) -> tuple[str, ...]:
    """Return the labels of a statement, by which schedules address it."""
    return tuple([getattr(stmt, field) for field in LABEL_FIELDS[type(stmt)]])


def declared_names(stmt: Stmt) -> tuple[str, ...]:
    """Return every name that a statement declares: labels, variables and buffers."""
    return (*labels_of(stmt), *names_bound(stmt))


def always_evaluated(node: Node) -> tuple[Any, ...]:
    """Return the operands of an expression, or of a statement, that are evaluated whenever it is.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import IfThenElse, Store, While
    >>> always_evaluated(IfThenElse(index_var("c"), ONE, ZERO)) == (index_var("c"),)
    True
    >>> always_evaluated(While(index_var("c"), (Store("Y", (ZERO,), ONE),))) == (index_var("c"),)
    True
    """
    if is_stmt(node):
        return effects_of(node).evaluates
    kind = type(node)
    lazy = LAZY.get(kind)
    if lazy is None:
        return tuple(children(node))
    return tuple([getattr(node, field) for field in kind.__struct_fields__ if field not in lazy])
