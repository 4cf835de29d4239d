"""Places each buffer that the function allocates at the innermost body that holds all its accesses,
and shrinks it to the elements that are live there.

A buffer may be private to a loop where different iterations touch different elements. An index
splits into a part that is fixed while the buffer lives and a part that varies with the loops below,
whose extents are constant, or, of one loop, known where the buffer begins to live;
where the fixed parts of all accesses agree, they are dropped and the varying part sets the extent.
What a body allocates already lives no longer than that body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, combine, expr_of
from gossamer_ir.injective import is_injective
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Expr,
    Fact,
    For,
    Function,
    Guard,
    If,
    Let,
    Load,
    Module,
    Node,
    Prefetch,
    Search,
    Stmt,
    Store,
    Var,
    While,
)  # fmt: skip
from gossamer_ir.walk import free_vars, map_children, statements, walk
from gossamer_lower.stages import map_functions

_Access = Load | Store | Prefetch
Facts = tuple[Fact, ...]


def plan_allocations(module: Module) -> Module:
    """Moves the allocated buffers of a loop-stage module without blocks into `Allocate`.

    >>> from gossamer_lower.examples import body_text, program
    >>> before = program('''
    ... Z = T.decl_buffer((n,), "float32", scope="local")
    ... for i in T.serial(n):
    ...     Z[i] = X[i] * 2.0
    ...     Y[i] = Z[i] + X[i]
    ... ''')
    >>> print(body_text(plan_allocations(before)))
    for i in T.serial(n):
        Z = T.alloc_buffer((1,), "float32", scope="local")
        Z[0] = X[i] * 2.0
        Y[i] = Z[0] + X[i]
    """
    return map_functions(module, "loop", "loop", _plan_function)


def _plan_function(function: Function) -> Function:
    facts = lasting_facts(function)
    body = _replaced(function.body, facts)
    for buffer in function.buffers:
        if buffer.handle is None and isinstance(buffer, Buffer):
            body = _place(body, buffer, facts)
    kept = tuple(found for found in function.buffers if found.handle is not None)
    return msgspec.structs.replace(function, body=body, buffers=kept)


def _replaced(body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
    """The body with what it allocates itself, in inner bodies too, placed in what follows."""
    result: tuple[Stmt, ...] = ()
    for stmt in reversed(body):
        if isinstance(stmt, Allocate):
            result = _place(result, stmt.buffer, facts)
        else:
            result = (_replaced_within(stmt, facts), *result)
    return result


def _replaced_within(stmt: Stmt, facts: Facts) -> Stmt:
    match stmt:
        case For() | While():
            return msgspec.structs.replace(stmt, body=_replaced(stmt.body, facts))
        case If():
            then_body, else_body = (
                _replaced(stmt.then_body, facts),
                _replaced(stmt.else_body, facts),
            )
            return msgspec.structs.replace(stmt, then_body=then_body, else_body=else_body)
    return stmt


def _place(body: tuple[Stmt, ...], buffer: Buffer, facts: Facts) -> tuple[Stmt, ...]:
    users = [at for at, stmt in enumerate(body) if _mentions((stmt,), buffer.name)]
    if not users:
        return body
    first, last = users[0], users[-1] + 1
    only = body[first]
    if len(users) == 1 and isinstance(only, For) and _is_private(only, buffer, facts):
        placed = msgspec.structs.replace(only, body=_place(only.body, buffer, facts))
        return (*body[:first], placed, *body[last:])
    if len(users) == 1 and isinstance(only, If) and _is_in_one_side(only, buffer.name):
        sides = _place(only.then_body, buffer, facts), _place(only.else_body, buffer, facts)
        return (*body[:first], If(only.condition, *sides), *body[last:])
    compacted, live = _compact(buffer, body[first:last])
    return (*body[:first], Allocate(compacted), *live, *body[last:])


def _mentions(nodes: Iterable[Any], name: str) -> bool:
    """Whether the buffer has to be there: a guard that names it may stand far before an access."""
    return any(
        isinstance(found, (Load, Store, Prefetch, Guard)) and found.buffer == name
        for found in walk(*nodes)
    )


def _accesses(nodes: Iterable[Any], name: str) -> Iterator[_Access]:
    for found in walk(*nodes):
        if isinstance(found, (Load, Store, Prefetch)) and found.buffer == name:
            yield found


def _is_in_one_side(stmt: If, name: str) -> bool:
    """Whether just one side of a choice mentions the buffer."""
    sides = (stmt.then_body, stmt.else_body)
    using = [_mentions(side, name) for side in sides]
    return using.count(True) == 1 and not _mentions((stmt.condition,), name)


class _Interval(msgspec.Struct, frozen=True):
    """What an index is while a buffer lives: fixed + [low, high], or (extent) fixed + [0, extent)."""

    fixed: Affine
    low: int
    high: int
    extent: Expr | None = None


def _is_private(loop: For, buffer: Buffer, facts: Facts) -> bool:
    """Whether different iterations touch different elements, along some dimension."""
    if loop.kind not in ("serial", "parallel"):
        return False
    intervals = _intervals(buffer, loop.body)
    return any(_separates(loop, found, facts) for found in intervals if found is not None)


def _separates(loop: For, interval: _Interval, facts: Facts) -> bool:
    if interval.extent is not None:
        return False
    step = abs(interval.fixed.terms.get(build.index_var(loop.var), 0))
    if interval.high - interval.low < step:
        return True
    (only, *others) = interval.fixed.terms or (build.ZERO,)
    is_one = interval.high == interval.low and not others
    return is_one and is_injective(only, loop, facts)


def _compact(buffer: Buffer, live: tuple[Stmt, ...]) -> tuple[Buffer, tuple[Stmt, ...]]:
    intervals = _intervals(buffer, live)
    shape: list[Expr] = []
    for extent, interval in zip(buffer.shape, intervals, strict=True):
        if interval is None:
            shape.append(extent)
        elif interval.extent is not None:
            shape.append(interval.extent)
        elif interval.high > interval.low:
            shape.append(build.index(interval.high - interval.low + 1))

    def shrink(node: Any) -> Any:
        inner = map_children(node, shrink)
        if isinstance(inner, (Load, Store, Prefetch)) and inner.buffer == buffer.name:
            return msgspec.structs.replace(inner, indices=_shrunk(inner.indices, intervals))
        return inner

    small = msgspec.structs.replace(buffer, shape=tuple(shape) or (build.ONE,))
    return small, tuple(shrink(stmt) for stmt in live)


def _shrunk(indices: tuple[Expr, ...], intervals: Sequence[_Interval | None]) -> tuple[Expr, ...]:
    result: list[Expr] = []
    for index, interval in zip(indices, intervals, strict=True):
        if interval is None:
            result.append(index)
        elif interval.extent is not None or interval.high > interval.low:
            rest = combine(affine_of(index), interval.fixed, -1)
            result.append(expr_of(Affine(rest.terms, rest.constant - interval.low)))
    return tuple(result) or (build.ZERO,)


def _intervals(buffer: Buffer, live: tuple[Stmt, ...]) -> list[_Interval | None]:
    """One interval for each dimension; None where an index does not split."""
    bounds = _bounds(live)
    accesses = list(_accesses(live, buffer.name))
    return [
        _merged([_interval(found.indices[at], bounds) for found in accesses])
        for at in range(len(buffer.shape))
    ]


_Bounds = dict[str, tuple[int, int] | Expr | None]
"""Smallest and largest value of each variable, or the extent of a loop from 0 on that is known outside."""


def _bounds(live: tuple[Stmt, ...]) -> _Bounds:
    """What is known of each variable bound below."""
    bounds: _Bounds = {}
    stored = {node.buffer for node in statements(live) if isinstance(node, Store)}
    for node in statements(live):
        if isinstance(node, For):
            bounds[node.var] = _loop_bounds(node)
        elif isinstance(node, Let):
            bounds[node.var.name] = None
    return {
        name: None if isinstance(found, Node) and not _is_known(found, bounds, stored) else found
        for name, found in bounds.items()
    }


def _is_known(extent: Expr, bounds: _Bounds, stored: set[str]) -> bool:
    """Whether an extent has one value while a buffer lives."""
    read = {node.buffer for node in walk(extent) if isinstance(node, (Load, Search))}
    return free_vars(extent).isdisjoint(bounds) and read.isdisjoint(stored)


def _loop_bounds(loop: For) -> tuple[int, int] | Expr | None:
    start, extent = build.integer_value(loop.start), build.integer_value(loop.extent)
    if extent is None:
        return loop.extent if start == 0 else None
    return None if start is None or extent <= 0 else (start, start + extent - 1)


def _interval(index: Expr, bounds: _Bounds) -> _Interval | None:
    form = affine_of(index)
    low = high = form.constant
    fixed: dict[Expr, int] = {}
    ragged: list[Expr] = []
    for atom, coefficient in form.terms.items():
        if not free_vars(atom) & bounds.keys():
            fixed[atom] = coefficient
            continue
        found = bounds.get(atom.name) if isinstance(atom, Var) else None
        if found is None or (isinstance(found, Node) and coefficient != 1):
            return None
        if isinstance(found, Node):
            ragged.append(found)
        else:
            ends = (coefficient * found[0], coefficient * found[1])
            low, high = low + min(ends), high + max(ends)
    return _ragged(fixed, ragged, (low, high)) if ragged else _Interval(Affine(fixed, 0), low, high)


def _ragged(fixed: dict[Expr, int], extents: list[Expr], rest: tuple[int, int]) -> _Interval | None:
    """The part of a dimension that begins somewhere in it, as long as the one loop that varies."""
    if not fixed or len(extents) != 1 or rest != (0, 0):
        return None
    return _Interval(Affine(fixed, 0), 0, 0, Binary("max", extents[0], build.ZERO))


def _merged(intervals: list[_Interval | None]) -> _Interval | None:
    first = intervals[0]
    if first is None:
        return None
    low, high = first.low, first.high
    for found in intervals[1:]:
        if found is None or found.fixed != first.fixed or found.extent != first.extent:
            return None
        low, high = min(low, found.low), max(high, found.high)
    return _Interval(first.fixed, low, high, first.extent)
