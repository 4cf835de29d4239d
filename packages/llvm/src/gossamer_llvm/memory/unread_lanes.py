"""Stores to local buffers that need no mask, because nothing reads the lanes that it switches off.

The last vector of a tile of accumulators is masked in each statement: `C = Select(mask, C + a * b, C)`, and
at the end a store with the same mask. With mask registers a multiply-add keeps lanes for free. Without them
each select is an instruction, and the mask takes a vector register, although nothing reads the lanes that it
keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

from gossamer_ir.core.build import ONE, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Call,
    Expr,
    Function,
    Load,
    Node,
    Ramp,
    Select,
    Stmt,
    Store,
    Unary,
)
from gossamer_ir.traversal.access_types import BUFFER_NODES
from gossamer_ir.traversal.fields import BODIES_BACKWARDS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.walk import children, collect, contains, every_stmt, stmts

_Indices: TypeAlias = tuple[Expr, ...]

_LANE_BY_LANE = (Binary, Unary, Call, Select)
"""Operations on floats whose lanes depend on the same lanes of their operands, and which no value stops."""


class _Vector(msgspec.Struct):
    """A vector of a local buffer: the masks of the selects that keep its lanes, and those by which it is
    read, None for a read of all lanes."""

    kept: set[Expr] = msgspec.field(default_factory=set)
    read: set[Expr | None] = msgspec.field(default_factory=set)


# Other statements: they neither allocate nor store.
def stores_of_unread_lanes(function: Function) -> frozenset[Store]:
    """Return the stores of selects between a new value and the old one, where nothing reads the lanes that
    keep the old one. They may store the new value in all lanes.

    >>> from gossamer_ir.script import parse_module
    >>> (function,) = parse_module('''
    ... @T.prim_func
    ... def copy(y: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     Z = T.alloc_buffer((4,), "float32", scope="local")
    ...     Z[T.ramp(0, 1, 4)] = T.Select(
    ...         T.ramp(0, 1, 4) < T.broadcast(n, 4), T.broadcast(1.0, 4), Z[T.ramp(0, 1, 4)])
    ...     T.store(Y, T.ramp(0, 1, 4), value=Z[T.ramp(0, 1, 4)],
    ...         predicate=T.ramp(0, 1, 4) < T.broadcast(n, 4))
    ... ''').functions
    >>> [store.buffer for store in stores_of_unread_lanes(function)]
    ['Z']
    """
    if not any(_blend(stmt) for stmt in every_stmt(function)):
        return frozenset()
    return frozenset(
        store
        for body in _bodies(function)
        for number, stmt in enumerate(body)
        if isinstance(stmt, Allocate)
        for store in _stores_to(stmt.buffer, body[number + 1 :])
    )


def new_value(store: Store) -> Expr:
    """Return the new value of a store of a select between it and the old one.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> new_value(Store("Z", (ZERO,), Select(index_var("c"), ONE, Load("Z", (ZERO,), "int64")))) == ONE
    True
    """
    assert isinstance(store.value, Select)
    return store.value.if_true


def _bodies(function: Function) -> Iterator[tuple[Stmt, ...]]:
    yield function.body
    for stmt in every_stmt(function):
        yield from (getattr(stmt, field) for field in BODIES_BACKWARDS[type(stmt)])


def _blend(stmt: Stmt) -> Select | None:
    """Return the select between a new value and the old one that a statement stores; None for others."""
    if not isinstance(stmt, Store) or not isinstance(stmt.value, Select) or stmt.predicate:
        return None
    old = stmt.value.if_false
    if not isinstance(old, Load) or old.predicate is not None:
        return None
    return stmt.value if (old.buffer, old.indices) == (stmt.buffer, stmt.indices) else None


def _stores_to(buffer: Buffer, body: tuple[Stmt, ...]) -> Iterable[Store]:
    """Return the stores to a buffer during its lifetime that may be of all lanes."""
    accesses = [node for node in collect(BUFFER_NODES, *body) if node.buffer == buffer.name]
    # An integer division may trap on the value of an inactive lane.
    is_float = DType.parse(buffer.dtype).is_float
    if buffer.scope != "local" or not is_float or not _are_vectors(accesses, buffer):
        return ()
    # A function that gets the address may read all lanes.
    if any(buffer.name in effects_of(stmt).passed_buffers for stmt in stmts(body)):
        return ()
    vectors: dict[_Indices, _Vector] = {access.indices: _Vector() for access in accesses}
    for stmt in stmts(body):
        _add_accesses(buffer.name, stmt, vectors)
    changing = bound_vars(body)
    return [
        stmt
        for stmt in stmts(body)
        if isinstance(stmt, Store)
        and stmt.buffer == buffer.name
        and (blend := _blend(stmt)) is not None
        and vectors[stmt.indices].kept == {blend.condition}
        and vectors[stmt.indices].read <= {blend.condition}
        and changing.isdisjoint(free_vars(blend.condition))
        and not contains(Load, blend.condition)
    ]


def _are_vectors(accesses: Iterable[Node], buffer: Buffer) -> bool:
    """Return whether nodes load and store whole vectors of a buffer, of which no two overlap."""
    all_lanes = {_vector_lanes(node) for node in accesses}
    lanes = all_lanes.pop() if len(all_lanes) == 1 else None
    row = integer_value(buffer.shape[-1])
    # Lanes past the end of a row are elements of the next one.
    return lanes is not None and row is not None and row % lanes == 0


def _vector_lanes(node: Node) -> int | None:
    """Return the lanes of an access to a whole vector at a constant place, a multiple of its lanes; None for
    others."""
    if not isinstance(node, (Load, Store)):
        return None
    *outer, last = node.indices
    if not isinstance(last, Ramp) or last.stride != ONE or last.lanes.scalable:
        return None
    base = integer_value(last.base)
    is_whole = base is not None and base >= 0 and base % last.lanes.count == 0
    return last.lanes.count if is_whole and None not in map(integer_value, outer) else None


def _add_accesses(name: str, stmt: Stmt, vectors: dict[_Indices, _Vector]) -> None:
    """Add the masks by which a statement keeps and reads vectors of a buffer, without nested statements."""
    if not isinstance(stmt, Store):
        for node in _operands(stmt):
            _add_reads(name, node, None, vectors)
        return
    blend = _blend(stmt)
    mask, value = stmt.predicate, stmt.value
    if blend is not None:
        mask, value = blend.condition, blend.if_true
        _add_reads(name, mask, None, vectors)
        if stmt.buffer == name:
            vectors[stmt.indices].kept.add(mask)
        else:
            _add_reads(name, blend.if_false, None, vectors)
    for node in (*stmt.indices, *filter(None, (stmt.predicate,))):
        _add_reads(name, node, None, vectors)
    _add_reads(name, value, mask, vectors)


def _operands(stmt: Stmt) -> list[Node]:
    below = {
        id(nested) for field in BODIES_BACKWARDS[type(stmt)] for nested in getattr(stmt, field)
    }
    return [node for node in children(stmt) if id(node) not in below]


def _add_reads(name: str, value: Node, mask: Expr | None, vectors: dict[_Indices, _Vector]) -> None:
    """Add the reads of a value of which only lanes in a mask are used (None: all)."""
    if isinstance(value, Load) and value.buffer == name:
        vectors[value.indices].read.add(mask if value.predicate is None else None)
    is_lane_by_lane = isinstance(value, _LANE_BY_LANE) and DType.parse(dtype_of(value)).is_float
    for node in children(value):
        _add_reads(name, node, mask if is_lane_by_lane else None, vectors)
