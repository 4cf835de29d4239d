"""Places each buffer that the function allocates at the innermost body that holds all its accesses,
and shrinks it to the elements that are live there.

A buffer may be private to a loop where different iterations touch different elements: those of
segments that follow one another, such as rows, among them. Where the fixed parts of all accesses
agree (`intervals_of`), they are dropped, and the part that varies sets the extent. What a body
allocates already lives no longer than that body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, combine, expr_of
from gossamer_ir.effects import buffers_named
from gossamer_ir.injective import is_injective
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Compare,
    Expr,
    Fact,
    For,
    Function,
    If,
    Load,
    Module,
    Stmt,
    Store,
    Var,
)  # fmt: skip
from gossamer_ir.prove import Prover
from gossamer_ir.walk import buffers_read, occurrences, rewrite_body, statements, substitute
from gossamer_lower.bodies import with_bodies
from gossamer_lower.guard_accesses import guard_buffers
from gossamer_lower.live_intervals import (
    Access,
    Interval,
    ends_of,
    intervals_of,
    range_of_loop,
    shrunk,
)
from gossamer_lower.stages import map_functions

Facts = tuple[Fact, ...]
Intervals = list[Interval | None]
"""Those of each dimension."""


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
    planned = _planned(function)
    unseen = _shrunk_unseen(function, planned)
    guarded = guard_buffers(function, unseen) if unseen else function
    return planned if guarded is function else _planned(guarded)


def _planned(function: Function) -> Function:
    facts = lasting_facts(function)
    body = _replaced(function.body, facts)
    for buffer in function.buffers:
        if buffer.handle is None and isinstance(buffer, Buffer):
            body = _place(body, buffer, facts)
    kept = tuple(found for found in function.buffers if found.handle is not None)
    return msgspec.structs.replace(function, body=body, buffers=kept)


def _shrunk_unseen(function: Function, planned: Function) -> set[str]:
    """The buffers that have become smaller and of which an access may be out of bounds. That has to stop
    the program also where all that is accessed exists now: so they are guarded before."""
    before, after = _allocated(function), _allocated(planned)
    shrunk = {name: shape for name, shape in before.items() if after.get(name) != shape}
    if not shrunk:
        return set()
    loops = {found.var: found for found in statements(function.body) if isinstance(found, For)}
    return {
        node.buffer
        for node in occurrences((Load, Store), *function.body)
        if node.buffer in shrunk and not _is_inside(node.indices, shrunk[node.buffer], loops)
    }


def _allocated(function: Function) -> dict[str, tuple[Expr, ...]]:
    """The shapes of the buffers that a function allocates."""
    declared = [found for found in function.buffers if isinstance(found, Buffer)]
    inside = [found.buffer for found in statements(function.body) if isinstance(found, Allocate)]
    return {found.name: found.shape for found in (*declared, *inside) if not found.handle}


def _is_inside(
    indices: tuple[Expr, ...], shape: tuple[Expr, ...], loops: Mapping[str, For]
) -> bool:
    """Whether an element exists for a reason that takes no search for a proof, as most do."""
    pairs = zip(indices, shape, strict=True)
    return all(_is_below(at, size, loops) or _is_over(at, size, loops) for at, size in pairs)


def _is_below(at: Expr, size: Expr, loops: Mapping[str, For]) -> bool:
    """Whether an index lies between constants that are in range, by the ranges of loops. It may wrap on
    the way there, as it is a sum of products."""

    def range_of(atom: Expr) -> object:
        loop = loops.get(atom.name) if isinstance(atom, Var) else None
        return loop and range_of_loop(loop)

    count = build.integer_value(size)
    ends = None if count is None else ends_of(affine_of(at), range_of)
    return ends is not None and ends[0] >= 0 and ends[1] < (count or 0)


def _is_over(at: Expr, size: Expr, loops: Mapping[str, For]) -> bool:
    """Whether an index is the variable of a loop over the dimension. A size that is read from memory
    might change in between."""
    loop = loops.get(at.name) if isinstance(at, Var) else None
    if loop is None or loop.start != build.ZERO:
        return False
    return loop.extent == size and not buffers_read(size)


def _replaced(body: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
    """The body with what it allocates itself, in inner bodies too, placed in what follows."""
    result: tuple[Stmt, ...] = ()
    for stmt in reversed(body):
        if isinstance(stmt, Allocate):
            result = _place(result, stmt.buffer, facts)
        else:
            result = (with_bodies(stmt, lambda inner: _replaced(inner, facts)), *result)
    return result


def _place(
    body: tuple[Stmt, ...], buffer: Buffer, facts: Facts, *, known: Intervals | None = None
) -> tuple[Stmt, ...]:
    """The body with the buffer where it lives; `known` are its intervals while the body runs."""
    users = [at for at, stmt in enumerate(body) if _mentions((stmt,), buffer.name)]
    if not users:
        return body
    first, last = users[0], users[-1] + 1
    only = body[first]
    if len(users) == 1 and isinstance(only, For) and only.kind in ("serial", "parallel"):
        inside = intervals_of(buffer, only.body)
        if _is_private(only, inside, facts):
            inner = _place(only.body, buffer, facts, known=inside)
            placed = msgspec.structs.replace(only, body=inner)
            return (*body[:first], placed, *body[last:])
    if len(users) == 1 and isinstance(only, If) and _is_in_one_side(only, buffer.name):
        sides = _place(only.then_body, buffer, facts), _place(only.else_body, buffer, facts)
        return (*body[:first], If(only.condition, *sides), *body[last:])
    live = body[first:last]
    if known is None or len(live) < len(body):
        known = intervals_of(buffer, live)
    compacted, live = _compact(buffer, live, known)
    return (*body[:first], Allocate(compacted), *live, *body[last:])


def _mentions(nodes: Iterable[Any], name: str) -> bool:
    """Whether the buffer has to be there: a guard that names it may stand far before an access."""
    return name in buffers_named(*nodes)


def _is_in_one_side(stmt: If, name: str) -> bool:
    """Whether just one side of a choice mentions the buffer."""
    sides = (stmt.then_body, stmt.else_body)
    using = [_mentions(side, name) for side in sides]
    return using.count(True) == 1 and not _mentions((stmt.condition,), name)


def _is_private(loop: For, intervals: Intervals, facts: Facts) -> bool:
    """Whether different iterations touch different elements, along some dimension."""
    return any(_separates(loop, found, facts) for found in intervals if found is not None)


def _separates(loop: For, interval: Interval, facts: Facts) -> bool:
    if interval.lengths:
        return any(_is_apart(loop, interval.fixed, length, facts) for length in interval.lengths)
    step = abs(interval.fixed.terms.get(build.index_var(loop.var), 0))
    if interval.high - interval.low < step:
        return True
    (only, *others) = interval.fixed.terms or (build.ZERO,)
    is_one = interval.high == interval.low and not others
    return is_one and is_injective(only, loop, facts)


def _is_apart(loop: For, start: Affine, length: Affine, facts: Facts) -> bool:
    """Whether the segment of any later iteration starts where that of an iteration ends, or behind."""
    later = build.index_var(f"{loop.var}'")
    prover = Prover(facts)
    prover.assume(Compare("gt", later, build.index_var(loop.var)))
    begin = substitute(expr_of(start), {loop.var: later})
    return prover.proves_nonnegative(build.sub(begin, expr_of(combine(start, length, 1))))


MOST_ELEMENTS = 1 << 12
"""How far beyond its end, at most, a dimension is accessed: by lanes that are masked off, which need no mask
where the elements are there, or out of bounds, which a guard finds only after the allocation."""


def _is_short(interval: Interval | None, extent: Expr) -> bool:
    """Whether a dimension becomes not much longer than it is, or stays short."""
    if interval is None or interval.lengths:
        return True
    size = max(build.integer_value(extent) or 0, 0)
    return interval.high - interval.low < size + MOST_ELEMENTS


def _compact(
    buffer: Buffer, live: tuple[Stmt, ...], intervals: Intervals
) -> tuple[Buffer, tuple[Stmt, ...]]:
    pairs = list(zip(buffer.shape, intervals, strict=True))
    intervals = [found if _is_short(found, extent) else None for extent, found in pairs]
    shape: list[Expr] = []
    for extent, interval in zip(buffer.shape, intervals, strict=True):
        if interval is None:
            shape.append(extent)
        elif interval.lengths:
            shape.append(Binary("max", expr_of(interval.lengths[0]), build.ZERO))
        elif interval.high > interval.low:
            shape.append(build.index(interval.high - interval.low + 1))

    def shrink(node: Any) -> Access | None:
        if not isinstance(node, Access) or node.buffer != buffer.name:
            return None
        return msgspec.structs.replace(node, indices=shrunk(node.indices, intervals))

    small = msgspec.structs.replace(buffer, shape=tuple(shape) or (build.ONE,))
    return small, rewrite_body(live, shrink, leaves=False)
