"""Accumulations that several threads make into one element: the mark of loops that do, and the step."""

from __future__ import annotations

from typing import get_args

from gossamer_ir.build import dtype_of
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import (
    Allocate,
    Atomic,
    AtomicOp,
    Binary,
    For,
    Load,
    Search,
    Store,
)  # fmt: skip
from gossamer_ir.reducers import match_reduction
from gossamer_ir.walk import occurrences, statements

ATOMIC = "atomic"
"""The annotation of a parallel loop whose iterations share elements, into which they accumulate: every
store to a buffer from outside of the loop becomes an `Atomic`."""

ATOMIC_OPS: tuple[AtomicOp, ...] = get_args(AtomicOp)


def is_atomic(loop: For) -> bool:
    """Whether the iterations of a loop share elements."""
    return dict(loop.annotations).get(ATOMIC) is True


def atomic_of(store: Store) -> Atomic | None:
    """A store `X[i] = X[i] op value` as one step; None where it is another, or of what is no number."""
    found = match_reduction(store)
    if found is None or found.op not in ATOMIC_OPS or store.predicate is not None:
        return None
    if not is_combined(dtype_of(store.value)):
        return None
    return Atomic(found.op, store.buffer, store.indices, found.value)


def is_combined(dtype: str) -> bool:
    """Whether values of a dtype are combined atomically: scalar numbers."""
    kind = DType.parse(dtype)
    return not kind.is_vector and (kind.is_integer or kind.is_float)


def plain_update(node: Atomic) -> Store:
    """The step as a load and a store, which is what it does where there is one thread."""
    old = Load(node.buffer, node.indices, dtype_of(node.value))
    return Store(node.buffer, node.indices, Binary(node.op, old, node.value))


def shared_otherwise(loop: For) -> str | None:
    """A buffer from outside that a loop writes and does not only accumulate into, by one operation."""
    inside = tuple(statements(loop.body))
    own = {stmt.buffer.name for stmt in inside if isinstance(stmt, Allocate)}
    stores = [stmt for stmt in inside if isinstance(stmt, Store) and stmt.buffer not in own]
    read = [node.buffer for node in occurrences((Load, Search), *loop.body)]
    ops: dict[str, AtomicOp] = {}
    for store in stores:
        found = atomic_of(store)
        if found is None or ops.setdefault(store.buffer, found.op) != found.op:
            return store.buffer
    for name in ops:
        if read.count(name) != sum(store.buffer == name for store in stores):
            return name
    return None
