"""Caches whose dimensions are the iterators of a block instead of the dimensions of the buffer.

Each dimension is indexed by one iterator. If the domain of the iterator is a fiber of length
`indptr[p + 1] - indptr[p]`, the index is the number of the element over all fibers, `indptr[p] + vj`. That
number also determines the iterators in `p`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import msgspec

from gossamer_ir.analysis.axes.element_numbers import numbers_of
from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.arith.affine import affine_of, expr_of
from gossamer_ir.arith.offsets import offset_of_length
from gossamer_ir.core.axis_kinds import indptr_of
from gossamer_ir.core.build import ONE, ZERO, add, index_var, integer_value, sub, widen
from gossamer_ir.core.expression_kinds import has_lanes
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    Expr,
    Function,
    IndexMap,
    InRange,
    Load,
    Monotone,
    Scope,
    Store,
    Var,
)
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import listing, schedule_error


class CacheDimension(msgspec.Struct, frozen=True):
    """One dimension of a cache: its index, its extent, and the iterators that the index determines."""

    index: Expr
    extent: Expr
    determines: frozenset[str]


def required_dimensions(
    cursor: Cursor[Block],
    iters: Sequence[BlockIter],
    order: tuple[str, ...],
    *,
    elements: Iterable[Sequence[Expr]],
) -> tuple[CacheDimension, ...]:
    """Return the dimensions of a cache with one element for each point of the iterators.

    `order` names the iterators in the order of the dimensions (empty: the order of `iters`); iterators that
    the index of another one determines have no dimension. `elements` are the indices of the accesses that
    the cache replaces.

    Raises `.order` and `.shape`.
    """
    if any(any(map(has_lanes, element)) for element in elements):
        raise schedule_error(
            f"{cursor.primitive}.shape",
            f"Block '{cursor.node.name}' accesses vectors, and the cache has one element for each point.",
        )
    by_iterator = _required_iterator_dimensions(cursor, iters)
    implied = {
        name
        for iterator_name in by_iterator
        for name in by_iterator[iterator_name].determines
        if name != iterator_name
    }
    needed = [name for name in by_iterator if name not in implied]
    if order and sorted(order) != sorted(needed):
        raise schedule_error(
            f"{cursor.primitive}.order",
            f"'{', '.join(order)}' does not name each iterator of block '{cursor.node.name}' that "
            "selects an element once.",
            hint=listing("iterators", needed),
        )
    dimensions = tuple(by_iterator[name] for name in order or needed)
    return dimensions or (CacheDimension(ZERO, ONE, frozenset()),)


def _required_iterator_dimensions(
    cursor: Cursor[Block], iters: Sequence[BlockIter]
) -> dict[str, CacheDimension]:
    """Return the dimension of each iterator."""
    dimensions: dict[str, CacheDimension] = {}
    for iterator in iters:
        dimension = _iterator_dimension(cursor.function, iterator, dimensions)
        if dimension is None:
            raise schedule_error(
                f"{cursor.primitive}.shape",
                f"The domain of '{iterator.var}' in block '{cursor.node.name}' is neither of a size that is "
                "known before the function runs, nor a fiber.",
            )
        dimensions[iterator.var] = dimension
    return dimensions


def determined_iters(cursor: Cursor[Block], access: Load | Store) -> frozenset[str]:
    """Return the iterators of a block that an accessed element determines by its indices and its numbers."""
    numbers = numbers_of(cursor.function, access.buffer, access.indices)
    by_iterator: dict[str, CacheDimension] = {}
    for iterator in cursor.node.iters:
        dimension = _iterator_dimension(cursor.function, iterator, by_iterator)
        if dimension is not None:
            by_iterator[iterator.var] = dimension
    iterator_vars = {iterator.var for iterator in cursor.node.iters}
    known_indices = (at for at in (*access.indices, *numbers) if at is not None)
    return (
        frozenset().union(*(_iters_determined_by(at, by_iterator) for at in known_indices))
        & iterator_vars
    )


def _iterator_dimension(
    function: Function, iterator: BlockIter, outer: Mapping[str, CacheDimension]
) -> CacheDimension | None:
    """Return the dimension of an iterator, given those of the iterators before it.

    The extent must be constant in the function, or the length of a fiber; else the result is None.
    """
    extent, var = iterator.domain.extent, index_var(iterator.var)
    sizes = {param.name for param in function.params}
    if free_vars(extent) <= sizes and not buffers_accessed(extent):
        return CacheDimension(var, extent, frozenset({iterator.var}))
    # The length of a fiber is not constant, but the number of elements of all fibers is.
    begin = offset_of_length(extent)
    if begin is None:
        return None
    elements = _element_count(function, begin.buffer)
    if elements is None:
        return None
    parents = frozenset().union(*(_iters_determined_by(at, outer) for at in begin.indices))
    return CacheDimension(add(widen(begin), var), elements, parents | {iterator.var})


def _element_count(function: Function, indptr: str) -> Expr | None:
    """Return an upper bound for the elements of all fibers delimited by a buffer; None if unknown."""
    handles = {buffer.name: buffer.handle for buffer in function.buffers}
    for axis in function.axes:
        offsets = indptr_of(axis)
        if offsets is not None and offsets.handle == handles.get(indptr):
            return offsets.nnz
    facts = fact_index(invariant_facts(function))
    interval = facts.last(indptr, InRange)
    if not facts.holds(indptr, Monotone) or interval is None or integer_value(interval.low) != 0:
        return None
    return expr_of(affine_of(sub(interval.high, ONE)))


def _iters_determined_by(at: Expr, outer: Mapping[str, CacheDimension]) -> frozenset[str]:
    """Return the iterators that one index determines."""
    if isinstance(at, Var):
        return frozenset({at.name})
    for dimension in outer.values():
        if dimension.index == at:
            return dimension.determines
    # The number of an element below nested dense axes, such as p * relations + r.
    names = [name for name in outer if name in free_vars(at)]
    if any(outer[name].index != index_var(name) for name in names):
        return frozenset()
    # Imported late: few blocks have such numbers.
    from gossamer_schedule.regions.iterator_map import layout_of

    number = IndexMap(tuple(names), (at,))
    is_one_to_one = layout_of(number, [outer[name].extent for name in names]) is not None
    return frozenset(names) if is_one_to_one else frozenset()


def cache_with_dimensions(
    old: AnyBuffer, scope: str, dimensions: Sequence[CacheDimension], *, name: str
) -> Buffer:
    """Return a buffer for copies of a buffer's elements, with the given dimensions."""
    shape = tuple(dimension.extent for dimension in dimensions)
    return Buffer(name, shape, old.dtype, scope=cast(Scope, scope))
