"""Nests of loops and branches, which are built from the outermost to the innermost.

A nest is a sequence of statements, of which each `For` and `If` without a body is a level: everything after
it is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_ir.nodes import Expr, For, If, Let, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.rename import with_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.substitute import resolve


class Tail(NamedTuple):
    """A statement after the levels of a nest beyond the first `depth` ones."""

    stmt: Stmt
    depth: int


def is_level(stmt: Stmt) -> bool:
    """Return whether the statements after one of a nest are in it."""
    match stmt:
        case For():
            return not stmt.body
        case If():
            return not stmt.then_body
    return False


def depth_of_loops(nest: Sequence[Stmt]) -> int:
    """Return the number of levels of a nest."""
    return sum(map(is_level, nest))


def wrap_in_nest(
    nest: Sequence[Stmt], body: Sequence[Stmt], tail: Tail | None = None
) -> tuple[Stmt, ...]:
    """Return the nest with a body in the innermost level.

    >>> from gossamer_ir.core.build import ZERO, index_var
    >>> from gossamer_formats.conversion.by_kernels.kernels.statements import let, loop
    >>> n, i = index_var("n"), index_var("i")
    >>> (stmt,) = wrap_in_nest([loop("i", ZERO, n, []), let("x", i)], [let("y", i)])
    >>> [statement.var.name for statement in stmt.body]
    ['x', 'y']
    """
    inner, depth = tuple(body), depth_of_loops(nest)
    for stmt in reversed(nest):
        if not is_level(stmt):
            inner = (stmt, *inner)
            continue
        if tail is not None and tail.depth == depth:
            inner = (*inner, tail.stmt)
        depth -= 1
        inner = (_fill_level(stmt, inner),)
    return (*inner, tail.stmt) if tail is not None and not tail.depth else inner


def without_outer_loops(
    nest: Sequence[Stmt], body: Sequence[Stmt], whole: Mapping[str, For]
) -> tuple[Stmt, ...]:
    """Return the nest for a body with as few loops as possible.

    `whole` has for the variable of a loop the one over all of its elements: it replaces the loops
    around it if the body needs none of their variables.

    >>> from gossamer_ir.core.build import ZERO, index_var
    >>> from gossamer_formats.conversion.by_kernels.kernels.statements import let, loop
    >>> i, e, begin, end, count = map(index_var, ("i", "e", "begin", "end", "count"))
    >>> nest = [loop("i", ZERO, end, []), loop("e", begin, end, []), let("row", i)]
    >>> (stmt,) = without_outer_loops(nest, [let("x", e)], {"e": loop("e", ZERO, count, [])})
    >>> stmt.extent.name
    'count'
    """
    needed = set(free_vars(*body))
    inner: list[Stmt] = []
    for level in reversed(range(len(nest))):
        stmt = nest[level]
        if isinstance(stmt, Let) and stmt.var.name not in needed:
            continue
        if isinstance(stmt, For) and stmt.var in whole:
            outer = bound_vars(nest[:level])
            if needed.isdisjoint(outer):
                return (whole[stmt.var], *inner)
        inner.insert(0, stmt)
        needed |= free_vars(stmt)
    return tuple(inner)


def rename_bound_vars(body: Sequence[Stmt], suffix: str) -> tuple[Stmt, ...]:
    """Return statements with other names of the variables that they bind, so that they can stand beside
    others that bind the same names."""
    names = {name: f"{name}{suffix}" for name in bound_vars(body)}
    return rewrite_body(tuple(body), lambda node: with_names(node, names))


def _fill_level(level: Stmt, body: tuple[Stmt, ...]) -> Stmt:
    if isinstance(level, For):
        return replace(level, body=body)
    assert isinstance(level, If)
    return replace(level, then_body=body)


def hoist(nest: Sequence[Stmt], bindings: Sequence[Stmt], stmt: Stmt) -> Tail:
    """Return a statement after the loops whose variables it does not read, so that it is executed less often.

    Variables that `bindings` or the nest bind are replaced by their values. A condition of the nest that is
    the same in all iterations of these loops may be needed: then the statement stays in the innermost level.
    """
    values: dict[str, Expr] = {}
    depths: dict[str, int] = {}
    conditions = []
    depth = 0
    for outer in (*nest, *bindings):
        depth += is_level(outer)
        match outer:
            case For():
                depths[outer.var] = depth
            case If():
                conditions.append(outer.condition)
            case Let():
                values[outer.var.name] = outer.value
    inlined = resolve(stmt, values)
    # Inside a loop that it does not depend on, the statement would be executed in each iteration.
    needed = _depth_of_vars(inlined, depths)
    if any(
        _depth_of_vars(resolve(condition, values), depths) <= needed for condition in conditions
    ):
        return Tail(stmt, depth_of_loops(nest))
    return Tail(inlined, needed)


def _depth_of_vars(node: Stmt | Expr, depths: dict[str, int]) -> int:
    """Return the number of levels up to the innermost loop whose variable a node reads."""
    return max((depths[name] for name in free_vars(node) if name in depths), default=0)
