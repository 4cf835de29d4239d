"""Unification of loop nests up to names, the order of loops, and the locations of elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import REDUCE_OPS
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Expr, For, Load, Node, Store, Var
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.free_vars import free_vars

COMMUTATIVE = REDUCE_OPS


class BufferBinding(msgspec.Struct, frozen=True):
    """The buffer that a buffer of the pattern is bound to, and the indices of its elements there.

    `loops` has the loop in each dimension of the pattern's buffer, None if its index is constant. A dimension
    whose index the pattern computes is a whole dimension of the buffer: its index there is a variable of its
    own, which takes the place of a loop.
    """

    buffer: str
    indices: tuple[Expr, ...]
    loops: tuple[str | None, ...]


class Match(msgspec.Struct, frozen=True):
    """The loops, scalars and buffers to which those of a pattern are bound."""

    loops: Mapping[str, str]
    scalars: Mapping[str, Expr]
    bindings: Mapping[str, BufferBinding]


def matches_of(
    pattern: Store, pattern_loops: Sequence[For], store: Store, loops: Sequence[For]
) -> Iterator[Match]:
    """Yield every match of a store in loops with that of a pattern.

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
    >>> (found,) = matches_of(loop.body[0], (loop,), other.body[0], (other,))
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(found.bindings["X"].indices[0])
    'n - 1 - i'
    """
    names = {loop.var for loop in loops}
    # Loops of a triangle cannot be permuted, and an intrinsic computes a box.
    if any(free_vars(loop.start, loop.extent) & names for loop in loops):
        return
    for order in permutations(loops) if len(loops) == len(pattern_loops) else ():
        start = _loop_match(pattern_loops, order)
        if start is not None:
            yield from _unified_nodes(pattern, store, start)


def _loop_match(pattern_loops: Sequence[For], loops: Sequence[For]) -> Match | None:
    """Return a match of loops in an order, with sizes bound to extents; None if extents differ."""
    scalars: dict[str, Expr] = {}
    for pattern_loop, other in zip(pattern_loops, loops, strict=True):
        if isinstance(pattern_loop.extent, Var):
            if scalars.setdefault(pattern_loop.extent.name, other.extent) != other.extent:
                return None
        elif integer_value(pattern_loop.extent) != integer_value(other.extent):
            return None
    names = {
        pattern_loop.var: other.var
        for pattern_loop, other in zip(pattern_loops, loops, strict=True)
    }
    return Match(names, scalars, {})


# Other expressions: their operands are visited.
def _unified_nodes(pattern: Any, node: Any, match: Match) -> Iterator[Match]:
    """Yield the extensions of a match to a part of the pattern and a part of the nest."""
    if isinstance(pattern, Var):
        yield from _matches_with_scalar(pattern, node, match)
    elif isinstance(pattern, (Load, Store)):
        for extended in _matches_with_buffer(pattern, node, match):
            if isinstance(pattern, Load):
                yield extended
            else:
                yield from _unified_nodes(pattern.value, node.value, extended)
    elif type(pattern) in BUFFER_NODES:
        return  # they name buffers, and those of the pattern are not the buffers of the nest
    elif type(pattern) is type(node):
        yield from _unified_sequences(_field_values(pattern), _field_values(node), match)
        # Both orders are tried: which operand comes first in a program is arbitrary.
        if isinstance(pattern, Binary) and pattern.op in COMMUTATIVE and pattern.op == node.op:
            yield from _unified_sequences((pattern.lhs, pattern.rhs), (node.rhs, node.lhs), match)


def _field_values(node: Node) -> tuple[Any, ...]:
    return tuple(getattr(node, name) for name in node.__struct_fields__)


def _unified_sequences(
    patterns: Sequence[Any], nodes: Sequence[Node], match: Match
) -> Iterator[Match]:
    """Yield the extensions of a match to all elements of two sequences."""
    if len(patterns) != len(nodes):
        return
    if not patterns:
        yield match
        return
    first, other = patterns[0], nodes[0]
    if isinstance(first, tuple) and isinstance(other, tuple):
        firsts = _unified_sequences(first, other, match)
    elif isinstance(first, Node):
        firsts = _unified_nodes(first, other, match)
    else:
        firsts = iter((match,) if first == other else ())
    for extended in firsts:
        yield from _unified_sequences(patterns[1:], nodes[1:], extended)


def _matches_with_scalar(pattern: Var, expr: Expr, match: Match) -> Iterator[Match]:
    """Yield the match if a loop of the pattern is bound to `expr`, or with a scalar bound to it.

    A scalar can only be bound to an expression that is invariant in the loops.
    """
    if pattern.name in match.loops:
        if expr == index_var(match.loops[pattern.name]):
            yield match
        return
    is_fixed = free_vars(expr).isdisjoint(match.loops.values())
    if is_fixed and dtype_of(expr) == pattern.dtype:
        scalars = {pattern.name: expr, **match.scalars}
        if scalars[pattern.name] == expr:
            yield replace(match, scalars=scalars)


# Other expressions: their operands are visited.
def _matches_with_buffer(pattern: Load | Store, access: Node, match: Match) -> Iterator[Match]:
    """Yield the match with a buffer of the pattern bound to the accessed one, always at the same indices."""
    # The implementation accesses all elements.
    if type(access) is not type(pattern) or access.predicate is not None:
        return
    if isinstance(pattern, Load) and isinstance(access, Load) and access.dtype != pattern.dtype:
        return
    loops = tuple(
        match.loops.get(at.name) if isinstance(at, Var) else None for at in pattern.indices
    )
    for extended, indices, names in _matches_with_indices(pattern, access.indices, loops, match):
        binding = BufferBinding(access.buffer, indices, names)
        used = free_vars(*indices) & set(match.loops.values())
        bindings = {pattern.buffer: binding, **extended.bindings}
        # A loop that selects the element but no dimension of the pattern would be lost.
        if used <= set(names) and bindings[pattern.buffer] == binding:
            yield replace(extended, bindings=bindings)


def _matches_with_indices(
    pattern: Load | Store,
    indices: tuple[Expr, ...],
    loops: tuple[str | None, ...],
    match: Match,
    dimension: int = 0,
) -> Iterator[tuple[Match, tuple[Expr, ...], tuple[str | None, ...]]]:
    """Yield the matches of the indices that a pattern computes with indices of an access, from a dimension
    on, with all indices and loops of the binding."""
    if dimension == len(pattern.indices):
        yield match, indices, loops
        return
    at = pattern.indices[dimension]
    if isinstance(at, Var) or not free_vars(at):
        yield from _matches_with_indices(pattern, indices, loops, match, dimension + 1)
        return
    # No identifier, so that no variable of a program has this name.
    name = f"{pattern.buffer}.{dimension}"
    names = (*loops[:dimension], name, *loops[dimension + 1 :])
    for number, other in enumerate(indices):
        bound = (*indices[:number], index_var(name), *indices[number + 1 :])
        for extended in _unified_nodes(at, other, match):
            yield from _matches_with_indices(pattern, bound, names, extended, dimension + 1)
