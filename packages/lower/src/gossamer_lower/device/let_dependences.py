"""The values of variables, and the variables on which expressions depend by way of them."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.nodes import Expr, For, Function, Let, Node
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import stmts


# Other statements: they give their variables no single value.
def values_of_vars(function: Function) -> dict[str, Expr]:
    """Return the values of the variables of lets, and of loops that have one iteration.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var, sub
    >>> begin = index_var("begin")
    >>> loop = For("i", begin, sub(add(begin, ONE), begin), ())
    >>> values_of_vars(Function("f", (), (Let(begin, index_var("n")), loop))) == {
    ...     "begin": index_var("n"), "i": begin
    ... }
    True
    """
    values: dict[str, Expr] = {}
    for stmt in stmts(function.body):
        if isinstance(stmt, Let):
            values[stmt.var.name] = stmt.value
        elif isinstance(stmt, For) and _is_one(resolve(stmt.extent, values)):
            values[stmt.var] = stmt.start
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
