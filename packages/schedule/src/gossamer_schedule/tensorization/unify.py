"""Loop nests that are alike up to names, the order of loops, and where elements are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import dtype_of, index_var, integer_value
from gossamer_ir.nodes import Binary, Expr, For, Load, Node, Store, Var
from gossamer_ir.traversal.effects import NAMING_BUFFERS
from gossamer_ir.traversal.walk import free_vars

COMMUTATIVE = ("add", "mul", "min", "max", "and", "or")


class View(msgspec.Struct, frozen=True):
    """What a buffer of a pattern is: the elements of a buffer at indices in terms of loops, one for each
    dimension of the pattern's (None for one where the pattern reads a fixed element)."""

    buffer: str
    indices: tuple[Expr, ...]
    loops: tuple[str | None, ...]


class Match(msgspec.Struct, frozen=True):
    """The loop that each loop of a pattern is, what its scalars are, and its buffers."""

    loops: Mapping[str, str]
    scalars: Mapping[str, Expr]
    views: Mapping[str, View]


def matches(
    pattern: Store, wanted: Sequence[For], store: Store, loops: Sequence[For]
) -> Iterator[Match]:
    """Every way in which a store in loops is that of a pattern.

    >>> from gossamer_ir.script import parse_module
    >>> text = '''
    ... @T.prim_func
    ... def scale(x: T.handle, y: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.serial(n):
    ...         Y[i] = X[i] * 2.0
    ... '''
    >>> loop = parse_module(text).functions[0].body[0]
    >>> other = parse_module(text.replace("X[i] * 2.0", "2.0 * X[n - 1 - i]")).functions[0].body[0]
    >>> (found,) = matches(loop.body[0], (loop,), other.body[0], (other,))
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(found.views["X"].indices[0])
    'n - 1 - i'
    """
    names = {loop.var for loop in loops}
    if any(free_vars(loop.start, loop.extent) & names for loop in loops):
        return
    for order in permutations(loops) if len(loops) == len(wanted) else ():
        start = _extents(wanted, order)
        if start is not None:
            yield from _unified(pattern, store, start)


def _extents(wanted: Sequence[For], loops: Sequence[For]) -> Match | None:
    """The loops in an order, where they are as long as wanted; sizes of the pattern become extents."""
    scalars: dict[str, Expr] = {}
    for mine, other in zip(wanted, loops, strict=True):
        if isinstance(mine.extent, Var):
            if scalars.setdefault(mine.extent.name, other.extent) != other.extent:
                return None
        elif integer_value(mine.extent) != integer_value(other.extent):
            return None
    names = {mine.var: other.var for mine, other in zip(wanted, loops, strict=True)}
    return Match(names, scalars, {})


def _unified(pattern: Any, found: Any, match: Match) -> Iterator[Match]:
    """The ways in which a part of the nest is a part of the pattern, given those so far."""
    if isinstance(pattern, Var):
        yield from _scalar(pattern, found, match)
    elif isinstance(pattern, (Load, Store)):
        for viewed in _viewed(pattern, found, match):
            if isinstance(pattern, Load):
                yield viewed
            else:
                yield from _unified(pattern.value, found.value, viewed)
    elif type(pattern) in NAMING_BUFFERS:
        return  # a name of another function says nothing here
    elif type(pattern) is type(found):
        yield from _in_turn(_fields(pattern), _fields(found), match)
        if isinstance(pattern, Binary) and pattern.op in COMMUTATIVE and pattern.op == found.op:
            yield from _in_turn((pattern.lhs, pattern.rhs), (found.rhs, found.lhs), match)


def _fields(node: Node) -> tuple[Any, ...]:
    return tuple(getattr(node, name) for name in node.__struct_fields__)


def _in_turn(patterns: Sequence[Any], found: Sequence[Any], match: Match) -> Iterator[Match]:
    if len(patterns) != len(found):
        return
    if not patterns:
        yield match
        return
    first, other = patterns[0], found[0]
    if isinstance(first, tuple) and isinstance(other, tuple):
        firsts = _in_turn(first, other, match)
    elif isinstance(first, Node):
        firsts = _unified(first, other, match)
    else:
        firsts = iter((match,) if first == other else ())
    for one in firsts:
        yield from _in_turn(patterns[1:], found[1:], one)


def _scalar(pattern: Var, found: Any, match: Match) -> Iterator[Match]:
    if pattern.name in match.loops:
        if found == index_var(match.loops[pattern.name]):
            yield match
        return
    is_fixed = free_vars(found).isdisjoint(match.loops.values())
    if is_fixed and dtype_of(found) == pattern.dtype:
        scalars = {pattern.name: found, **match.scalars}
        if scalars[pattern.name] == found:
            yield replace(match, scalars=scalars)


def _viewed(pattern: Load | Store, found: Any, match: Match) -> Iterator[Match]:
    if type(found) is not type(pattern) or found.predicate is not None:
        return
    if isinstance(pattern, Load) and isinstance(found, Load) and found.dtype != pattern.dtype:
        return
    loops = tuple(
        match.loops.get(at.name) if isinstance(at, Var) else None for at in pattern.indices
    )
    view = View(found.buffer, found.indices, loops)
    used = free_vars(*found.indices) & set(match.loops.values())
    views = {pattern.buffer: view, **match.views}
    if used <= set(loops) and views[pattern.buffer] == view:
        yield replace(match, views=views)
