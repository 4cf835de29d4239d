"""Facts about sparse buffers and axes, as facts about the ordinary buffers that replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.axes.axis_facts import facts_of_axis
from gossamer_ir.arith.affine import affine_of, expr_of
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.core.build import ONE, ZERO, add, sub, widen
from gossamer_ir.facts.fact_kinds import FACT_KINDS, buffer_fields, subject_of
from gossamer_ir.nodes import (
    Axis,
    Buffer,
    Expr,
    Fact,
    HasValue,
    InRange,
    Load,
    Monotone,
    ProductSteps,
    Relation,
    SparseBuffer,
)
from gossamer_ir.traversal.rewrite import map_children
from gossamer_lower.buffers.layout.ordinary_buffers import OrdinaryBuffers


def stated_facts(
    buffers: OrdinaryBuffers, facts: Iterable[Fact], *, lower: Callable[[Any], Any]
) -> Iterator[Fact]:
    """Yield the facts that the program states, for the ordinary buffers. A fact about each row is dropped
    if the rows are flattened into one dimension, of which it does not hold."""
    ordinary = buffers.names | buffers.flat
    for fact in facts:
        is_of_each_row = FACT_KINDS[type(fact)].is_of_each_row(fact)
        if not (is_of_each_row and _joins_rows(buffers, subject_of(fact))):
            fields = {field: getattr(fact, field) for field in buffer_fields(type(fact))}
            names = {field: ordinary[name] for field, name in fields.items() if name in ordinary}
            yield replace(map_children(fact, lower), **names)


def facts_of_axes(buffers: OrdinaryBuffers, relations: Iterable[Relation]) -> Iterator[Fact]:
    """Yield the facts about index buffers that follow from the declarations of the axes."""
    for axis in buffers.axes.values():
        yield from _facts_of(buffers, axis)
    for offsets in buffers.offsets.values():
        yield from _offset_facts(offsets)
    for buffer in buffers.sparse.values():
        yield from _product_facts(buffers, buffer)
    yield from _relation_facts(buffers, relations)


def _joins_rows(buffers: OrdinaryBuffers, name: str) -> bool:
    buffer = buffers.sparse.get(name)
    return buffer is not None and len(buffers.ordinary(buffer).shape) < len(buffer.axes)


def _facts_of(buffers: OrdinaryBuffers, axis: Axis) -> Iterator[Fact]:
    indptr = indptr_of(axis)
    if indptr is None:
        return facts_of_axis(axis, name_of=buffers.index_name)
    last, total = _last_index(buffers.size(indptr.handle)), buffers.storage.counts.tree.size(axis)
    return facts_of_axis(axis, name_of=buffers.index_name, last=last, total=total)


def _product_facts(buffers: OrdinaryBuffers, buffer: SparseBuffer) -> Iterator[Fact]:
    """Yield the fact that the offsets of a buffer are prefix sums of products of lengths."""
    offsets = None if buffer.offsets is None else buffers.offsets.get(buffer.offsets)
    names = [buffers.index_name(handle) for handle in buffers.storage.product_arrays(buffer)]
    match offsets, names:
        case Buffer(name=name), [str() as left, str() as right]:
            yield ProductSteps(name, left, right)


def _relation_facts(buffers: OrdinaryBuffers, relations: Iterable[Relation]) -> Iterator[Fact]:
    """Yield the relations between axes as relations between the fibers of their index buffers."""
    for relation in relations:
        related = [indices_of(buffers.axes[name]) for name in (relation.left, relation.right)]
        names = [None if array is None else buffers.index_name(array.handle) for array in related]
        match names:
            case [str() as one, str() as two]:
                yield Relation(relation.kind, one, two)


def _offset_facts(offsets: Buffer) -> list[Fact]:
    """Return the facts that offsets start at 0, never decrease, and do not exceed the last one."""
    total = widen(Load(offsets.name, (_last_index(offsets.shape[0]),), offsets.dtype))
    return [
        InRange(offsets.name, ZERO, add(total, ONE)),
        Monotone(offsets.name),
        HasValue(offsets.name, ZERO, ZERO),
    ]


def _last_index(extent: Expr) -> Expr:
    return expr_of(affine_of(sub(extent, ONE)))
