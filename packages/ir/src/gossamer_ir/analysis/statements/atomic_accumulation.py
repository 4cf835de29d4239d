"""Atomic accumulation into elements that several threads share: the loop annotation and the operation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.annotations import ATOMIC
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
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
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.walk import collect, stmts

ATOMIC_OPS: tuple[AtomicOp, ...] = get_args(AtomicOp)


def is_atomic(loop: For) -> bool:
    """Return whether a loop is annotated with `ATOMIC`. Buffers that it does not name are not shared: only
    one iteration accesses each of their elements."""
    mark = dict(loop.annotations).get(ATOMIC)
    return mark is True or isinstance(mark, str)


def atomic_annotation(buffers: Iterable[str]) -> tuple[str, AnnotationValue]:
    """Return the annotation for a loop whose iterations share elements of these buffers.

    >>> atomic_annotation(["C", "D"])
    ('atomic', 'C, D')
    """
    return ATOMIC, ", ".join(buffers)


def shared_names(loop: For) -> tuple[str, ...] | None:
    """Return the buffers that the annotation of a loop names; None if it stands for all that are stored
    to."""
    mark = dict(loop.annotations).get(ATOMIC)
    return tuple(mark.split(", ")) if isinstance(mark, str) else None


def is_shared(loop: For, buffer_name: str) -> bool:
    """Return whether the iterations of an annotated loop share elements of a buffer from outside the loop."""
    names = shared_names(loop)
    return names is None or buffer_name in names


def atomic_of(store: Store) -> Atomic | None:
    """Return a store `X[i] = X[i] op value` as an atomic operation; None for other stores, operators and
    dtypes."""
    reduction = match_reduction(store)
    # A predicate would have to be evaluated and the update made in one step.
    if reduction is None or reduction.op not in ATOMIC_OPS or store.predicate is not None:
        return None
    if not is_atomic_dtype(dtype_of(store.value)):
        return None
    return Atomic(reduction.op, store.buffer, store.indices, reduction.value)


def is_atomic_dtype(dtype_name: str) -> bool:
    """Return whether values of a dtype can be combined atomically: only scalar numbers can."""
    dtype = DType.parse(dtype_name)
    return not dtype.is_vector and (dtype.is_integer or dtype.is_float)


def plain_update(node: Atomic) -> Store:
    """Return the operation as a load and a store, which is equivalent with a single thread."""
    old = Load(node.buffer, node.indices, dtype_of(node.value))
    return Store(node.buffer, node.indices, Binary(node.op, old, node.value))


def buffer_shared_otherwise(loop: For) -> str | None:
    """Return a shared buffer of an annotated loop whose accesses are not all accumulations by one operator;
    None if there is none."""
    inside = tuple(stmts(loop.body))
    allocated = buffers_allocated(loop.body)
    stored = (stmt.buffer for stmt in inside if isinstance(stmt, Store))
    shared = (
        name for name in dict.fromkeys(stored) if name not in allocated and is_shared(loop, name)
    )
    return next((name for name in shared if not is_accumulated(loop, name)), None)


def is_accumulated(loop: For, buffer_name: str) -> bool:
    """Return whether a loop accesses a buffer only to accumulate into it, by one operator that can be
    atomic."""
    stores = [
        stmt for stmt in stmts(loop.body) if isinstance(stmt, Store) and stmt.buffer == buffer_name
    ]
    read = [node for node in collect(READS, *loop.body) if node.buffer == buffer_name]
    # Each operation reads the element that it updates once. Any other read could see a partial sum.
    ops = {_accumulation_operator(store) for store in stores}
    return len(ops) == 1 and None not in ops and len(read) == len(stores)


def is_atomic_update(store: Store) -> bool:
    """Return whether a store accumulates by an operator that can be atomic: into one element, or into a
    different element for each lane of a vector."""
    return _accumulation_operator(store) is not None


def _accumulation_operator(store: Store) -> str | None:
    """Return the operator by which a store accumulates; None if it does not, or if lanes may share an
    element."""
    reduction = match_reduction(store)
    if reduction is None or reduction.op not in ATOMIC_OPS:
        return None
    dtype = DType.parse(dtype_of(store.value))
    if not is_atomic_dtype(dtype.scalar):
        return None
    if dtype.is_vector:
        return reduction.op if any(map(_is_different_in_lanes, store.indices)) else None
    return reduction.op if store.predicate is None else None


def _is_different_in_lanes(index: Expr) -> bool:
    # A stride below 2**32 times the number of a lane does not wrap, so lanes have different indices.
    stride = integer_value(index.stride) if isinstance(index, Ramp) else None
    return stride is not None and 0 < abs(stride) < 2**32
