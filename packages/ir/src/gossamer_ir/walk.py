"""Walking and rewriting of nodes, generic over the fields of each node.

A rewriter returns the same object where nothing changed, so that `is` tells.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from gossamer_ir.nodes import Expr, Node, Stmt, Var

N = TypeVar("N", bound=Node)


_LEAF_TYPES = re.compile(
    r"(str|int|bool|None|Scope|StageName|ThreadTag|ReduceOp|AtomicOp|UnaryOp|BinaryOp|CompareOp|Annotations"
    r"|Literal\[.*\]|tuple\[str, \.\.\.\])( \| None)?"
)

_STATEMENT_TYPES = re.compile(r"tuple\[(Stmt|Store), \.\.\.\]")


@cache
def _fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields that may hold nodes, in order."""
    return tuple(name for name, text in _types(kind).items() if _LEAF_TYPES.fullmatch(text) is None)


@cache
def _fields_backwards(kind: type[Node]) -> tuple[str, ...]:
    return _fields(kind)[::-1]


@cache
def _bodies_backwards(kind: type[Node]) -> tuple[str, ...]:
    """The fields that hold statements, the last one first."""
    types = _types(kind)
    return tuple(name for name in reversed(types) if _STATEMENT_TYPES.fullmatch(types[name]))


def _types(kind: type[Node]) -> dict[str, str]:
    """The fields in order, and how the types of each are written."""
    types = {
        name: str(text)
        for base in reversed(kind.__mro__)
        for name, text in inspect.get_annotations(base).items()
    }
    return {name: types[name] for name in kind.__struct_fields__}


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below, in the order of the fields."""
    for name in _fields(type(node)):
        below = getattr(node, name)
        if type(below) is tuple:
            yield from below
        elif below is not None:
            yield below


def walk(*nodes: Node) -> Iterator[Node]:
    """The nodes, each with all below it, parents first.

    >>> from gossamer_ir.build import ONE, ZERO, add, index_var
    >>> [type(found).__name__ for found in walk(add(index_var("i"), ONE), ZERO)]
    ['Binary', 'Var', 'Const', 'Const']
    """
    stack = list(nodes[::-1])
    while stack:
        current = stack.pop()
        yield current
        for name in _fields_backwards(type(current)):
            below = getattr(current, name)
            if type(below) is tuple:
                stack += below[::-1]
            elif below is not None:
                stack.append(below)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements of a body, each with all below it, parents first: `walk` that stays out of
    expressions."""
    stack = [*body][::-1]
    while stack:
        current = stack.pop()
        yield current
        for name in _bodies_backwards(type(current)):
            stack += getattr(current, name)[::-1]


def map_children(node: N, function: Callable[[Any], Any]) -> N:
    """The node with function applied to each node directly below it.

    A function may return a tuple for an item of a tuple field (a statement that became several, or
    none); it is spliced in.
    """
    changed: dict[str, Any] = {}
    for name in _fields(type(node)):
        value = getattr(node, name)
        if value is None:
            continue
        new = _map_tuple(value, function) if type(value) is tuple else function(value)
        if new is not value:
            changed[name] = new
    return msgspec.structs.replace(node, **changed) if changed else node


def _map_tuple(items: tuple[Any, ...], function: Callable[[Any], Any]) -> tuple[Any, ...]:
    if not items:
        return items
    result: list[Any] = []
    is_same = True
    for item in items:
        new = function(item)
        is_same = is_same and new is item
        if type(new) is tuple:
            result += new
        else:
            result.append(new)
    return items if is_same else tuple(result)


def rewrite(node: Any, rule: Callable[[Any], Any | None]) -> Any:
    """Applies a rule bottom-up; the rule returns None for "does not apply", a node, or (for a
    statement) a tuple of statements."""

    def visit(current: Any) -> Any:
        inner = map_children(current, visit)
        replaced = rule(inner)
        return inner if replaced is None else replaced

    return visit(node)


def rewrite_body(body: tuple[Any, ...], rule: Callable[[Any], Any | None]) -> tuple[Any, ...]:
    """`rewrite` over a tuple of statements."""
    return _map_tuple(body, lambda item: rewrite(item, rule))


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """Replaces variables by name. Names are unique in a function, so nothing is captured."""

    def rule(inner: Any) -> Any | None:
        return values.get(inner.name) if isinstance(inner, Var) else None

    return rewrite(node, rule) if values else node


def substitute_body(body: tuple[Any, ...], values: Mapping[str, Expr]) -> tuple[Any, ...]:
    """`substitute` over a tuple of statements."""
    return _map_tuple(body, lambda item: substitute(item, values)) if values else body


def resolve(node: Any, values: Mapping[str, Expr]) -> Any:
    """`substitute` until no variable is left that stands for something."""

    def rule(inner: Any) -> Any | None:
        if not isinstance(inner, Var) or inner.name not in values:
            return None
        return resolve(values[inner.name], values)

    return rewrite(node, rule) if values else node


def free_vars(*nodes: Node) -> frozenset[str]:
    """The names of all variables that occur in expressions."""
    return frozenset([found.name for found in walk(*nodes) if type(found) is Var])
