"""The values of variables, and the variables on which expressions depend by way of them."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Expr, Function, Node
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import loop_of, values_bound
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import stmts


def values_of_vars(function: Function) -> dict[str, Expr]:
    """Return the values of the variables of lets, and of loops that have one iteration.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub
    >>> from gossamer_ir.nodes import For, Let
    >>> begin = index_var("begin")
    >>> loop = For("i", begin, sub(add(begin, ONE), begin), ())
    >>> values_of_vars(Function("f", (), (Let(begin, index_var("n")), loop))) == {
    ...     "begin": index_var("n"), "i": begin
    ... }
    True
    """
    values: dict[str, Expr] = {}
    for stmt in stmts(function.body):
        values |= {var.name: value for var, value in values_bound(stmt)}
        loop = loop_of(stmt)
        if loop is not None and _is_one(resolve(loop.extent, values)):
            values[loop.var] = loop.start
    return values


def _is_one(extent: Expr) -> bool:
    form = affine_of(extent)
    return not form.terms and form.constant == 1


def let_dependences(*nodes: Node, value_of: Callable[[str], Expr | None]) -> set[str]:
    """Return the variables in nodes, and in the values of lets that they use; `value_of` returns None for
    another variable.

    >>> from gossamer_ir.core.build import add, index_var
    >>> i, j, n = map(index_var, "ijn")
    >>> sorted(let_dependences(add(i, n), value_of={"i": j}.get))
    ['i', 'j', 'n']
    """
    names: set[str] = set()
    pending = list(free_vars(*nodes))
    while pending:
        name = pending.pop()
        if name not in names:
            names.add(name)
            value = value_of(name)
            pending += () if value is None else free_vars(value)
    return names
