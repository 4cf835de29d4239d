"""The variables on which expressions depend, also by way of lets."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_ir.nodes import Expr, Node
from gossamer_ir.traversal.free_vars import free_vars


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
