"""Clones statements with fresh names for everything that they bind: names are unique in a function."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_ir.nodes import Expr, Node, Stmt, Var
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rename import with_labels, with_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import labels_of, names_bound
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import stmts


def with_fresh_names(
    body: tuple[Stmt, ...], namer: Namer, *, values: Mapping[str, Expr] | None = None
) -> tuple[Stmt, ...]:
    """Return a copy of the body with fresh names for what it binds, and with `values` for free variables.

    Variables, allocated buffers and the labels of blocks and iterations get fresh names, wherever they occur.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import For
    >>> (loop,) = with_fresh_names((For("i", ZERO, ONE, ()),), Namer(["i"]))
    >>> loop.var
    'i_1'
    """
    substitutions = values or {}
    names: dict[str, str] = {}
    labels: dict[str, str] = {}
    for stmt in stmts(body):
        labels.update((label, namer.fresh(label)) for label in labels_of(stmt))
        names.update((name, namer.fresh(name)) for name in names_bound(stmt))
    if not names and not labels:
        return substitute_body(body, substitutions)

    def rename_node(node: Node) -> Node | None:
        if type(node) is Var and node.name not in names:
            return substitutions.get(node.name)
        return with_labels(with_names(node, names), labels)

    return rewrite_body(body, rename_node)
