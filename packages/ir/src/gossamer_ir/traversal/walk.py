"""Traversal of nodes, generic over the fields of each type of node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

from gossamer_ir.nodes import Function, Node, Stmt
from gossamer_ir.traversal.fields import BODIES_BACKWARDS, FIELDS, FIELDS_BACKWARDS, LEAVES
from gossamer_support.identity_cache import memoize_by_identity

N = TypeVar("N", bound=Node)
A = TypeVar("A", bound=Node)
B = TypeVar("B", bound=Node)
C = TypeVar("C", bound=Node)
D = TypeVar("D", bound=Node)
E = TypeVar("E", bound=Node)


class _Searches(dict[Any, tuple[frozenset[Any], frozenset[Any]]]):
    """The node types searched for, and the leaf types that can be skipped, for each argument of `collect`."""

    def __missing__(self, kinds: Any) -> tuple[frozenset[Any], frozenset[Any]]:
        wanted = frozenset(kinds if type(kinds) is tuple else (kinds,))
        self[kinds] = types = (wanted, LEAVES - wanted)
        return types


_SEARCHES = _Searches()


def children(node: Node) -> list[Node]:
    """Return the direct children of a node, in the order of its fields."""
    nodes: list[Node] = []
    for name in FIELDS[type(node)]:
        below = getattr(node, name)
        if type(below) is tuple:
            nodes += below
        elif below is not None:
            nodes.append(below)
    return nodes


def walk(*nodes: Node) -> Iterator[Node]:
    """Yield the nodes and all their descendants, in pre-order.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> [type(node).__name__ for node in walk(add(index_var("i"), ONE), ZERO)]
    ['Binary', 'Var', 'Const', 'Const']
    """
    stack = list(nodes[::-1])
    while stack:
        current = stack.pop()
        yield current
        # Backwards, because a stack returns the last field first.
        for name in FIELDS_BACKWARDS[type(current)]:
            below = getattr(current, name)
            if type(below) is tuple:
                stack += below[::-1]
            elif below is not None:
                stack.append(below)


@overload
def collect(kinds: type[A], *nodes: Node) -> list[A]: ...
@overload
def collect(kinds: tuple[type[A], type[B]], *nodes: Node) -> list[A | B]: ...
@overload
def collect(kinds: tuple[type[A], type[B], type[C]], *nodes: Node) -> list[A | B | C]: ...
@overload
def collect(
    kinds: tuple[type[A], type[B], type[C], type[D]], *nodes: Node
) -> list[A | B | C | D]: ...
@overload
def collect(
    kinds: tuple[type[A], type[B], type[C], type[D], type[E]], *nodes: Node
) -> list[A | B | C | D | E]: ...
def collect(kinds: Any, *nodes: Node) -> list[Any]:
    """Return the nodes of `walk` that have one of some types.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> from gossamer_ir.nodes import Var
    >>> collect(Var, add(index_var("i"), ONE), ZERO)
    [Var(name='i', dtype='int64')]
    """
    # `walk` inlined: resuming a generator for each node would take as long as the traversal itself.
    wanted, skipped = _SEARCHES[kinds]
    collected: list[Node] = []
    stack = list(nodes[::-1])
    while stack:
        current = stack.pop()
        kind: type[Any] = type(current)
        if kind in wanted:
            collected.append(current)
        for name in FIELDS_BACKWARDS[kind]:
            below = getattr(current, name)
            kind = type(below)
            if kind is tuple:
                stack += below[::-1]
            elif kind not in skipped:
                stack.append(below)
    return collected


def contains(kinds: type[Node] | tuple[type[Node], ...], *nodes: Node) -> bool:
    """Return whether `collect` finds any node.

    >>> from gossamer_ir.core.build import ONE
    >>> from gossamer_ir.nodes import Var
    >>> contains(Var, ONE)
    False
    """
    wanted, skipped = _SEARCHES[kinds]
    stack = list(nodes)
    while stack:
        current = stack.pop()
        kind: type[Any] = type(current)
        if kind in wanted:
            return True
        for name in FIELDS[kind]:
            below = getattr(current, name)
            kind = type(below)
            if kind is tuple:
                stack += below
            elif kind not in skipped:
                stack.append(below)
    return False


def group_by_type(*nodes: Node) -> dict[type[Any], list[Any]]:
    """Return the nodes of `walk`, grouped by type.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> from gossamer_ir.nodes import Var
    >>> group_by_type(add(index_var("i"), ONE))[Var]
    [Var(name='i', dtype='int64')]
    """
    by_type: defaultdict[type[Any], list[Any]] = defaultdict(list)
    stack = list(nodes[::-1])
    while stack:  # `walk` inlined, as in `collect`
        current = stack.pop()
        kind: type[Any] = type(current)
        by_type[kind].append(current)
        for name in FIELDS_BACKWARDS[kind]:
            below = getattr(current, name)
            if type(below) is tuple:
                stack += below[::-1]
            elif below is not None:
                stack.append(below)
    return dict(by_type)


def stmts(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield the statements of a body and all those nested in them, in pre-order: `walk` without
    expressions."""
    stack = [*body][::-1]
    while stack:
        current = stack.pop()
        yield current
        for name in BODIES_BACKWARDS[type(current)]:
            stack += getattr(current, name)[::-1]


def outermost(kind: type[N], body: Iterable[Stmt]) -> Iterator[N]:
    """Yield the statements of a type in a body, at any depth but not inside another one of that type, in
    program order."""
    stack = [*body][::-1]
    while stack:
        current = stack.pop()
        if isinstance(current, kind):
            yield current
            continue
        for name in BODIES_BACKWARDS[type(current)]:
            stack += getattr(current, name)[::-1]


@memoize_by_identity
def every_stmt(function: Function) -> tuple[Stmt, ...]:
    """Return the statements of a whole function."""
    return tuple(stmts(function.body))
