"""The variables that nodes refer to, cached for each expression."""

from __future__ import annotations

from functools import lru_cache

from gossamer_ir.nodes import EXPRS, Node, Var
from gossamer_ir.traversal.walk import collect

_EXPRS = frozenset(EXPRS)


def free_vars(*nodes: Node) -> frozenset[str]:
    """Return the names of all variables that occur in nodes.

    >>> from gossamer_ir.core.build import add, index_var
    >>> from gossamer_ir.nodes import Load
    >>> sorted(free_vars(add(index_var("i"), Load("X", (index_var("j"),), "int64"))))
    ['i', 'j']
    """
    if len(nodes) == 1 and type(nodes[0]) in _EXPRS:
        return _free_vars_of(nodes[0])
    return frozenset([var.name for var in collect(Var, *nodes)])


@lru_cache(maxsize=4096)
def _free_vars_of(expr: Node) -> frozenset[str]:
    return frozenset([var.name for var in collect(Var, expr)])
