"""Accumulations that several threads make into one element: the mark of loops that do, and the step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from gossamer_ir.analysis.reductions import match_reduction
from gossamer_ir.core.build import dtype_of, integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    AnnotationValue,
    Atomic,
    AtomicOp,
    Binary,
    Expr,
    For,
    Load,
    Ramp,
    Store,
)  # fmt: skip
from gossamer_ir.traversal.effects import READS, buffers_allocated
from gossamer_ir.traversal.walk import collect, statements

ATOMIC = "atomic"
"""The annotation of a parallel loop whose iterations share elements, into which they accumulate: every
store to a buffer that it names becomes an `Atomic`. The value is the names of such buffers, separated by
commas, or True for all buffers from outside of the loop that are stored to. Other buffers that the loop
stores to are not shared: each of their elements is touched in one iteration."""

ATOMIC_OPS: tuple[AtomicOp, ...] = get_args(AtomicOp)


def is_atomic(loop: For) -> bool:
    """Whether the iterations of a loop share elements."""
    mark = dict(loop.annotations).get(ATOMIC)
    return mark is True or isinstance(mark, str)


def mark_of(buffers: Iterable[str]) -> tuple[str, AnnotationValue]:
    """The annotation of a loop whose iterations share elements of these buffers.

    >>> mark_of(["C", "D"])
    ('atomic', 'C, D')
    """
    return ATOMIC, ", ".join(buffers)


def shared_names(loop: For) -> tuple[str, ...] | None:
    """The buffers that the mark of a loop names; None where it is about all that are stored to."""
    mark = dict(loop.annotations).get(ATOMIC)
    return tuple(mark.split(", ")) if isinstance(mark, str) else None


def is_shared(loop: For, buffer: str) -> bool:
    """Whether a marked loop shares elements of a buffer from outside of it."""
    names = shared_names(loop)
    return names is None or buffer in names


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
    """A buffer from outside of a marked loop that is shared by its iterations, and that they do not only
    accumulate into, by one operation."""
    inside = tuple(statements(loop.body))
    own = buffers_allocated(loop.body)
    stored = (stmt.buffer for stmt in inside if isinstance(stmt, Store))
    shared = (name for name in dict.fromkeys(stored) if name not in own and is_shared(loop, name))
    return next((name for name in shared if not is_accumulated(loop, name)), None)


def is_accumulated(loop: For, buffer: str) -> bool:
    """Whether all that a loop does to a buffer is to accumulate into it, by one operation that threads
    can make in one step."""
    stores = [
        stmt for stmt in statements(loop.body) if isinstance(stmt, Store) and stmt.buffer == buffer
    ]
    read = [node for node in collect(READS, *loop.body) if node.buffer == buffer]
    # Each step reads the element that it adds to, once: any other read would see some of the sum.
    ops = {_accumulating(store) for store in stores}
    return len(ops) == 1 and None not in ops and len(read) == len(stores)


def is_accumulation(store: Store) -> bool:
    """Whether a store combines elements with values, by an operation that threads can make in one step for
    each: one element, or one for each lane of a vector."""
    return _accumulating(store) is not None


def _accumulating(store: Store) -> str | None:
    """The operation by which a store accumulates; None where it does not, or where lanes might meet."""
    found = match_reduction(store)
    if found is None or found.op not in ATOMIC_OPS:
        return None
    dtype = DType.parse(dtype_of(store.value))
    if not is_combined(dtype.scalar):
        return None
    if dtype.is_vector:
        return found.op if any(map(_is_different_in_lanes, store.indices)) else None
    return found.op if store.predicate is None else None


def _is_different_in_lanes(index: Expr) -> bool:
    # Multiples of a stride below 2**32 by lanes do not wrap around.
    stride = integer_value(index.stride) if isinstance(index, Ramp) else None
    return stride is not None and 0 < abs(stride) < 2**32
