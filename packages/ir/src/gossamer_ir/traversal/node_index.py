"""An index of the nodes of a function by type, so that all passes share one walk over a function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from gossamer_ir.core.statement_kinds import is_stmt
from gossamer_ir.nodes import STMTS, Function, Node
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.walk import children, every_stmt, group_by_type
from gossamer_support.identity_cache import memoize_by_identity

_STMTS = frozenset(STMTS)


def nodes_of_type(function: Function, *types: type[Node]) -> Iterator[Any]:
    """Yield the nodes of a function that have one of some types: type by type, each in the order of `walk`.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> function = Function("f", (), (Store("Y", (ZERO,), ONE),))
    >>> [node.text for node in nodes_of_type(function, Const)]
    ['0', '1']
    """
    # Most nodes are expressions, so an index of statements alone is much cheaper to build.
    by_type = (stmts_by_type if _STMTS.issuperset(types) else nodes_by_type)(function)
    for type_ in types:
        yield from by_type.get(type_, ())


@memoize_by_identity
def nodes_by_type(function: Function) -> Mapping[type[Node], list[Any]]:
    """Return all nodes of a function by type, itself included."""
    return group_by_type(function)


@memoize_by_identity
def stmts_by_type(function: Function) -> Mapping[type[Node], list[Any]]:
    """Return all statements of a function by type."""
    by_type: defaultdict[type[Node], list[Any]] = defaultdict(list)
    for stmt in every_stmt(function):
        by_type[type(stmt)].append(stmt)
    return dict(by_type)


@memoize_by_identity
def types_in(function: Function) -> frozenset[type[Any]]:
    """Return the types of the nodes in the body of a function.

    Every pass checks first whether the function has nodes that it handles. Since passes leave most
    statements unchanged, the types below each statement are cached across passes.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> types_in(Function("f", (), (Store("Y", (ZERO,), ONE),))) == {Store, Const}
    True
    """
    parts = _parts(function)
    return frozenset(map(type, every_stmt(function))).union(*map(_grouped, parts))


def nodes_in_body(function: Function, *types: type[Node]) -> Iterator[Any]:
    """Yield the expressions of a function, and its statements without bodies, that have one of some types.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> [node.text for node in nodes_in_body(Function("f", (), (Store("Y", (ZERO,), ONE),)), Const)]
    ['0', '1']
    """
    for part in _parts(function):
        by_type = _grouped(part)
        for type_ in types:
            yield from by_type.get(type_, ())


def _parts(function: Function) -> list[Node]:
    """Return the statements without bodies, and the operands of those with bodies."""
    parts: list[Node] = []
    for stmt in every_stmt(function):
        if has_bodies(type(stmt)):
            parts += [child for child in children(stmt) if not is_stmt(child)]
        else:
            parts.append(stmt)
    return parts


_grouped = lru_cache(maxsize=4096)(group_by_type)
