"""Traversal and rewriting of nodes, generic over the fields of each type of node.

A rewriter returns the same object if nothing changed, so that callers can compare with `is`, and caches
that are keyed by identity stay valid.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar, overload

from msgspec.structs import replace

from gossamer_ir.nodes import (
    EXPRESSIONS,
    Const,
    Expr,
    Function,
    Lanes,
    Load,
    Node,
    Search,
    Stmt,
    Var,
    VScale,
)  # fmt: skip
from gossamer_ir.traversal.identity_cache import memoize_by_identity

N = TypeVar("N", bound=Node)
A = TypeVar("A", bound=Node)
B = TypeVar("B", bound=Node)
C = TypeVar("C", bound=Node)
D = TypeVar("D", bound=Node)
E = TypeVar("E", bound=Node)

# Annotations are matched as text, since evaluating all of them would add about 20 ms to an
# import. A test compares the result with the evaluated types, so that a new alias cannot be forgotten.
_LEAF_TYPES = re.compile(
    r"(str|int|bool|None|Scope|StageName|ThreadTag|ReduceOp|AtomicOp|UnaryOp|BinaryOp|CompareOp|Annotations"
    r"|Literal\[.*\]|tuple\[str, \.\.\.\])( \| None)?"
)

_STATEMENT_TYPES = re.compile(r"tuple\[(Stmt|Store), \.\.\.\]")

_EXPRESSIONS = frozenset(EXPRESSIONS)
LEAVES: frozenset[type[Any]] = frozenset({Const, Lanes, Var, VScale, type(None)})
"""Field types that contain no further nodes."""


class _Searches(dict[Any, tuple[frozenset[Any], frozenset[Any]]]):
    """The node types searched for, and the leaf types that can be skipped, for each argument of `collect`."""

    def __missing__(self, kinds: Any) -> tuple[frozenset[Any], frozenset[Any]]:
        wanted = frozenset(kinds if type(kinds) is tuple else (kinds,))
        self[kinds] = found = (wanted, LEAVES - wanted)
        return found


_SEARCHES = _Searches()


class _Fields(dict[type[Node], tuple[str, ...]]):
    """Some fields of each type of node, computed on first use. A dict because a lookup is faster than a
    call of a cached function."""

    def __init__(self, find: Callable[[type[Node]], tuple[str, ...]]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type[Node]) -> tuple[str, ...]:
        self[kind] = found = self._find(kind)
        return found


def _holding_nodes(kind: type[Node]) -> tuple[str, ...]:
    return tuple(name for name, text in _types(kind).items() if _LEAF_TYPES.fullmatch(text) is None)


def _holding_statements(kind: type[Node]) -> tuple[str, ...]:
    return tuple(name for name, text in _types(kind).items() if _STATEMENT_TYPES.fullmatch(text))


def _types(kind: type[Node]) -> dict[str, str]:
    """The fields in order, and the text of their annotations."""
    types = {
        name: str(text)
        for base in reversed(kind.__mro__)
        for name, text in getattr(base, "__annotations__", {}).items()
    }
    return {name: types[name] for name in kind.__struct_fields__}


_FIELDS = _Fields(_holding_nodes)
"""The fields that may hold nodes, in order of declaration."""
_FIELDS_BACKWARDS = _Fields(lambda kind: _FIELDS[kind][::-1])
_BODIES_BACKWARDS = _Fields(lambda kind: _holding_statements(kind)[::-1])
"""The fields that hold statements, last one first: the order in which a stack is filled."""


def children(node: Node) -> list[Node]:
    """The direct children of a node, in the order of its fields."""
    found: list[Node] = []
    for name in _FIELDS[type(node)]:
        below = getattr(node, name)
        if type(below) is tuple:
            found += below
        elif below is not None:
            found.append(below)
    return found


def walk(*nodes: Node) -> Iterator[Node]:
    """The nodes and all their descendants, in pre-order.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> [type(found).__name__ for found in walk(add(index_var("i"), ONE), ZERO)]
    ['Binary', 'Var', 'Const', 'Const']
    """
    stack = list(nodes[::-1])
    while stack:
        current = stack.pop()
        yield current
        for name in _FIELDS_BACKWARDS[type(current)]:
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
    """The nodes of `walk` that have one of some types.

    >>> from gossamer_ir.core.build import ONE, ZERO, add, index_var
    >>> collect(Var, add(index_var("i"), ONE), ZERO)
    [Var(name='i', dtype='int64')]
    """
    # `walk` inlined: resuming a generator for each node would take as long as the traversal itself.
    wanted, skipped = _SEARCHES[kinds]
    found: list[Node] = []
    stack = list(nodes[::-1])
    while stack:
        current = stack.pop()
        kind: type[Any] = type(current)
        if kind in wanted:
            found.append(current)
        for name in _FIELDS_BACKWARDS[kind]:
            below = getattr(current, name)
            kind = type(below)
            if kind is tuple:
                stack += below[::-1]
            elif kind not in skipped:
                stack.append(below)
    return found


def contains(kinds: type[Node] | tuple[type[Node], ...], *nodes: Node) -> bool:
    """True if `collect` finds any node.

    >>> from gossamer_ir.core.build import ONE
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
        for name in _FIELDS[kind]:
            below = getattr(current, name)
            kind = type(below)
            if kind is tuple:
                stack += below
            elif kind not in skipped:
                stack.append(below)
    return False


def grouped(*nodes: Node) -> dict[type[Any], list[Any]]:
    """The nodes of `walk`, grouped by type.

    >>> from gossamer_ir.core.build import ONE, add, index_var
    >>> grouped(add(index_var("i"), ONE))[Var]
    [Var(name='i', dtype='int64')]
    """
    found: defaultdict[type[Any], list[Any]] = defaultdict(list)
    stack = list(nodes[::-1])
    while stack:  # `walk` inlined, as in `collect`
        current = stack.pop()
        kind: type[Any] = type(current)
        found[kind].append(current)
        for name in _FIELDS_BACKWARDS[kind]:
            below = getattr(current, name)
            if type(below) is tuple:
                stack += below[::-1]
            elif below is not None:
                stack.append(below)
    return dict(found)


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements of a body and all those nested in them, in pre-order: `walk` without expressions."""
    stack = [*body][::-1]
    while stack:
        current = stack.pop()
        yield current
        for name in _BODIES_BACKWARDS[type(current)]:
            stack += getattr(current, name)[::-1]


def outermost(kind: type[N], body: Iterable[Stmt]) -> Iterator[N]:
    """The statements of a type in a body, at any depth but not inside another one of that type, in program
    order."""
    stack = [*body][::-1]
    while stack:
        current = stack.pop()
        if isinstance(current, kind):
            yield current
            continue
        for name in _BODIES_BACKWARDS[type(current)]:
            stack += getattr(current, name)[::-1]


def has_bodies(kind: type[Node]) -> bool:
    """True if statements of a type have bodies."""
    return bool(_BODIES_BACKWARDS[kind])


def body_fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a type of statement, or of a function, that hold statements.

    >>> from gossamer_ir.nodes import If, Let
    >>> body_fields(If), body_fields(Let)
    (('then_body', 'else_body'), ())
    """
    return _BODIES_BACKWARDS[kind][::-1]


@memoize_by_identity
def every_statement(function: Function) -> tuple[Stmt, ...]:
    """The `statements` of a whole function."""
    return tuple(statements(function.body))


def map_children(node: N, function: Callable[[Any], Any]) -> N:
    """The node with a function applied to each of its direct children.

    For an item of a tuple field the function may return a tuple (a statement that became several, or
    none), which is spliced in.
    """
    names = _FIELDS[type(node)]
    if not names:
        return node
    changed: dict[str, Any] = {}
    for name in names:
        value = getattr(node, name)
        if value is None:
            continue
        new = _map_tuple(value, function) if type(value) is tuple else function(value)
        if new is not value:
            changed[name] = new
    return replace(node, **changed) if changed else node


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


def rewrite(node: Any, rule: Callable[[Any], Any | None], *, leaves: bool = True) -> Any:
    """Applies a rule bottom-up.

    The rule returns None for "does not apply", a node, or (for a statement) a tuple of statements. It is
    called once for an expression object that occurs several times, and for nodes without children
    (variables, constants) only with `leaves`.
    """
    return _Rewriter(rule, leaves=leaves).visit(node)


def rewrite_body(
    body: tuple[Any, ...], rule: Callable[[Any], Any | None], *, leaves: bool = True
) -> tuple[Any, ...]:
    """`rewrite` for a tuple of statements."""
    return _Rewriter(rule, leaves=leaves).each(body)


class _Rewriter:
    """Applies a rule to nodes. Results are cached by `id`, which is safe because all nodes outlive it."""

    def __init__(self, rule: Callable[[Any], Any | None], *, leaves: bool) -> None:
        self._rule = rule
        self._leaves = leaves
        self._done: dict[int, Any] = {}

    def visit(self, current: Any) -> Any:
        kind = type(current)
        names = _FIELDS[kind]
        if not names:
            replaced = self._rule(current) if self._leaves else None
            return current if replaced is None else replaced
        is_expression = kind in _EXPRESSIONS
        if is_expression:
            key = id(current)
            if key in self._done:
                return self._done[key]
        # `map_children` inlined, since rewriting spends most of its time here.
        changed: dict[str, Any] = {}
        for name in names:
            below = getattr(current, name)
            if type(below) is tuple:
                new = self.each(below) if below else below
            elif below is None:
                continue
            elif _FIELDS[type(below)]:
                new = self.visit(below)
            elif self._leaves:
                replaced = self._rule(below)
                if replaced is None:
                    continue
                new = replaced
            else:
                continue
            if new is not below:
                changed[name] = new
        inner = replace(current, **changed) if changed else current
        replaced = self._rule(inner)
        result = inner if replaced is None else replaced
        if is_expression:
            self._done[key] = result
        return result

    def each(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """`_map_tuple` inlined."""
        result: list[Any] = []
        is_same = True
        for item in items:
            if _FIELDS[type(item)]:
                new = self.visit(item)
            else:
                new = self._rule(item) if self._leaves else item
                if new is None:
                    new = item
            is_same = is_same and new is item
            if type(new) is tuple:
                result += new
            else:
                result.append(new)
        return items if is_same else tuple(result)


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """Replaces variables by name. Names are unique in a function, so no variable can be captured."""

    def visit(current: Any) -> Any:
        if type(current) is Var:
            return values.get(current.name, current)
        return map_children(current, visit)

    return visit(node) if values and not _is_without(node, values) else node


def substitute_body(body: tuple[Any, ...], values: Mapping[str, Expr]) -> tuple[Any, ...]:
    """`substitute` for a tuple of statements."""

    def rule(node: Any) -> Any | None:
        return values.get(node.name) if type(node) is Var else None

    return rewrite_body(body, rule) if values else body


def resolve(node: Any, values: Mapping[str, Expr]) -> Any:
    """`substitute`, repeated in the replacements until none of the variables is left."""

    def visit(current: Any) -> Any:
        if type(current) is Var:
            found = values.get(current.name)
            return current if found is None else visit(found)
        return current if type(current) in LEAVES else map_children(current, visit)

    if type(node) in LEAVES:
        return visit(node)
    return visit(node) if values and not _is_without(node, values) else node


def _is_without(node: Any, values: Mapping[str, Expr]) -> bool:
    """True if a node is an expression (whose free variables are cached) without any of the variables."""
    return type(node) in _EXPRESSIONS and _free_vars_of(node).isdisjoint(values)


def free_vars(*nodes: Node) -> frozenset[str]:
    """The names of all variables that occur in nodes."""
    if len(nodes) == 1 and type(nodes[0]) in _EXPRESSIONS:
        return _free_vars_of(nodes[0])
    return frozenset([var.name for var in collect(Var, *nodes)])


@lru_cache(maxsize=4096)
def _free_vars_of(expr: Node) -> frozenset[str]:
    return frozenset([var.name for var in collect(Var, expr)])


def buffers_read(*nodes: Node) -> frozenset[str]:
    """The buffers that nodes load from or search in."""
    if len(nodes) == 1 and type(nodes[0]) in _EXPRESSIONS:
        return _buffers_read_by(nodes[0])
    return frozenset([found.buffer for found in collect((Load, Search), *nodes)])


@lru_cache(maxsize=4096)
def _buffers_read_by(expr: Node) -> frozenset[str]:
    return frozenset([found.buffer for found in collect((Load, Search), expr)])
