"""Accumulations into elements that iterations share become steps that threads make one after another."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import msgspec

from gossamer_ir.analysis.atomics import ATOMIC, ATOMIC_OPS, atomic_of, is_atomic, is_shared
from gossamer_ir.analysis.lane_projection import count_of, in_lane
from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.core import build
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.typed_calls import typed
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import (
    Allocate,
    Atomic,
    Buffer,
    Expr,
    For,
    Function,
    If,
    Lanes,
    Load,
    Module,
    Ramp,
    Stmt,
    Store,
)  # fmt: skip
from gossamer_ir.traversal.effects import READS, buffers_allocated
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.walk import rewrite_body, statements, walk
from gossamer_lower.bounds.lane_checks import lanes_of_access
from gossamer_lower.stages import map_functions


@typed
def lower_atomics(module: Module) -> Module:
    """Takes a flat module. In a loop marked `atomic`, each accumulation into a buffer from outside of the
    loop that its iterations share becomes an atomic one, that of a vector one for each lane; the mark goes.

    Raises `UnsupportedError` (`lower.atomic`) where such a buffer is read or written otherwise.

    >>> from gossamer_ir.script import print_module
    >>> from gossamer_lower import outline_parallel
    >>> from gossamer_lower.examples import program
    >>> before = program('''
    ... for i in T.parallel(n, annotations={"atomic": True}):
    ...     Y[P[i]] = Y[P[i]] + X[i]
    ... ''')
    >>> print(print_module(lower_atomics(outline_parallel(before))).partition("for ")[2])
    i in T.serial(begin, end):
            T.atomic_add(Y[P[i]], X[i])
    <BLANKLINE>
    """
    return map_functions(module, "flat", "flat", _lower_function)


def _lower_function(function: Function) -> Function:
    if not any(isinstance(stmt, For) and is_atomic(stmt) for stmt in statements(function.body)):
        return function
    namer = namer_of(function)
    own = buffers_allocated(function.body)

    def rule(node: Any) -> For | None:
        return _lowered(node, own, namer) if isinstance(node, For) and is_atomic(node) else None

    return msgspec.structs.replace(function, body=rewrite_body(function.body, rule))


def _lowered(loop: For, own: Set[str], namer: Namer) -> For:
    """The loop, what it accumulates into in atomic steps but for what is not shared, and for what the
    function `own`s: each thread has that for itself."""

    def rule(node: Any) -> Stmt | tuple[Stmt, ...] | None:
        if not isinstance(node, Store) or node.buffer in own or not is_shared(loop, node.buffer):
            return None
        found = atomic_of(node)
        return _by_lane(node, namer) if found is None else found

    body = rewrite_body(loop.body, rule)
    combined = {stmt.buffer for stmt in statements(body) if isinstance(stmt, Atomic)}
    for node in walk(*body):
        if isinstance(node, READS) and node.buffer in combined:
            raise _unsupported(node.buffer)
    kept = tuple(item for item in loop.annotations if item[0] != ATOMIC)
    return msgspec.structs.replace(loop, body=body, annotations=kept)


def _by_lane(store: Store, namer: Namer) -> tuple[Stmt, ...]:
    """The terms of all lanes are computed at once, and combined one by one."""
    found, lanes = match_reduction(store), lanes_of_access(store)
    if found is None or lanes is None or found.op not in ATOMIC_OPS:
        raise _unsupported(store.buffer)
    lane = build.index_var(namer.fresh("lane"))
    before: list[Stmt] = []

    def kept_lane(vector: Expr) -> Expr:
        kept = Buffer(
            namer.fresh(f"{store.buffer}_lanes"),
            (count_of(lanes),),
            DType.parse(build.dtype_of(vector)).scalar,
            scope="local",
        )
        before.extend((Allocate(kept), Store(kept.name, (_all(lanes),), vector)))
        return Load(kept.name, (lane,), kept.dtype)

    def place(index: Expr) -> Expr:
        if not DType.parse(build.dtype_of(index)).is_vector:
            return index
        return in_lane(index, lane) if isinstance(index, Ramp) else kept_lane(index)

    at = tuple(place(index) for index in store.indices)
    step: Stmt = Atomic(found.op, store.buffer, at, kept_lane(found.value))
    if store.predicate is not None:
        step = If(kept_lane(store.predicate), (step,))
    return (*before, For(lane.name, build.ZERO, count_of(lanes), (step,)))


def _all(lanes: Lanes) -> Ramp:
    return Ramp(build.ZERO, build.ONE, lanes)


def _unsupported(buffer: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.atomic",
        f"Iterations that share elements of '{buffer}' do more than to accumulate into it by one of "
        f"{', '.join(ATOMIC_OPS)}.",
        hint="Use accumulate='privatised'.",
    )
