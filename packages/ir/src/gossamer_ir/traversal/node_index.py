"""The nodes of a function by their kind: one walk for all that ask about a function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from gossamer_ir.nodes import STATEMENTS, Function, Node
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.walk import children, every_statement, grouped, has_bodies

_STATEMENTS = frozenset(STATEMENTS)


def of_kind(function: Function, *kinds: type[Node]) -> Iterator[Any]:
    """The nodes of a function that are of some kinds, those of one kind in the order of `walk`.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> function = Function("f", (), (Store("Y", (ZERO,), ONE),))
    >>> [found.text for found in of_kind(function, Const)]
    ['0', '1']
    """
    # Most nodes are expressions, which a walk for statements stays out of.
    known = (statements_by_kind if _STATEMENTS.issuperset(kinds) else nodes_by_kind)(function)
    for kind in kinds:
        yield from known.get(kind, ())


@memoize_by_identity
def nodes_by_kind(function: Function) -> Mapping[type[Node], list[Any]]:
    """All nodes of a function, itself included."""
    return grouped(function)


@memoize_by_identity
def statements_by_kind(function: Function) -> Mapping[type[Node], list[Any]]:
    """All statements of a function."""
    found: defaultdict[type[Node], list[Any]] = defaultdict(list)
    for stmt in every_statement(function):
        found[type(stmt)].append(stmt)
    return dict(found)


@memoize_by_identity
def kinds_in(function: Function) -> frozenset[type[Any]]:
    """The kinds of nodes in the body of a function: one pass after the other asks whether there is
    anything for it to do, and leaves most statements as they are.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> kinds_in(Function("f", (), (Store("Y", (ZERO,), ONE),))) == {Store, Const}
    True
    """
    parts = _parts(function)
    return frozenset(map(type, every_statement(function))).union(*map(_grouped, parts))


def in_body(function: Function, *kinds: type[Node]) -> Iterator[Any]:
    """The expressions, and statements without bodies, of a function that are of some kinds.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Const, Store
    >>> [found.text for found in in_body(Function("f", (), (Store("Y", (ZERO,), ONE),)), Const)]
    ['0', '1']
    """
    for part in _parts(function):
        known = _grouped(part)
        for kind in kinds:
            yield from known.get(kind, ())


def _parts(function: Function) -> list[Node]:
    """The statements without bodies, and the expressions that stand in the others themselves."""
    found: list[Node] = []
    for stmt in every_statement(function):
        if has_bodies(type(stmt)):
            found += [child for child in children(stmt) if type(child) not in _STATEMENTS]
        else:
            found.append(stmt)
    return found


_grouped = lru_cache(maxsize=4096)(grouped)
