"""The facts that axes guarantee about their index arrays, for all stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer_ir.analysis.invariants import invariant_facts, mutable_buffers
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_dense_root
from gossamer_ir.core.build import ONE, ZERO, add
from gossamer_ir.nodes import (
    Axis,
    BitCounts,
    Expr,
    Fact,
    Function,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    SortedSegments,
)
from gossamer_support.identity_cache import memoize_by_identity


def facts_of_axis(
    axis: Axis,
    *,
    name_of: Callable[[str], str | None],
    last: Expr | None = None,
    total: Expr | None = None,
) -> Iterator[Fact]:
    """Yield the facts that an axis guarantees about its index arrays.

    `name_of` returns the name to use for the array of a handle, None if it is to be left out. `last` is
    the index of the last offset if offsets have a single index; `total` is the number of elements of the
    axis.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import CompressedVaried
    >>> n, nnz = index_var("n"), index_var("nnz")
    >>> axis = CompressedVaried("J", "I", n, nnz, "indptr", "indices")
    >>> [type(fact).__name__ for fact in facts_of_axis(axis, name_of=str.upper)]
    ['Monotone', 'InRange', 'SortedSegments']
    >>> list(facts_of_axis(axis, name_of={"indices": "C"}.get))  # the ends of segments are unknown
    [InRange(buffer='C', low=Const(dtype='int64', text='0'), high=Var(name='n', dtype='int64'))]
    """
    indptr, indices = indptr_of(axis), indices_of(axis)
    offsets = None if indptr is None else name_of(indptr.handle)
    if indptr is not None and offsets is not None:
        if total is not None:
            yield InRange(offsets, ZERO, add(total, ONE))
        yield Monotone(offsets)
        if last is not None:
            yield HasValue(offsets, ZERO, ZERO)
        if last is not None and indptr.nnz is not None:
            yield HasValue(offsets, last, indptr.nnz)
    coordinates = None if indices is None else name_of(indices.handle)
    if indices is not None and coordinates is not None and indices.is_mask:
        if offsets is not None:
            yield BitCounts(coordinates, offsets, axis.length)
    elif indices is not None and coordinates is not None:
        yield InRange(coordinates, ZERO, add(axis.length, ONE) if indices.padded else axis.length)
        if indices.sorted and (offsets is not None or indptr is None):
            yield SortedSegments(coordinates, offsets, indices.unique)
        if indices.padded:
            yield PaddedSlots(coordinates, axis.length)


@memoize_by_identity
def known_facts(function: Function) -> tuple[Fact, ...]:
    """Return the facts about buffers that a function does not write: declared ones, and those from axes."""
    return (*invariant_facts(function), *_axis_facts(function))


def _axis_facts(function: Function) -> Iterator[Fact]:
    """Yield the facts from axes about index buffers that the function does not write."""
    names = _read_only_buffers(function) if function.axes else {}
    for axis in function.axes:
        yield from facts_of_axis(axis, name_of=names.get, last=_last_offset(axis, function))


def _read_only_buffers(function: Function) -> dict[str, str]:
    """Return the buffers that the function does not write, by handle."""
    changing = mutable_buffers(function)
    return {
        buffer.handle: buffer.name
        for buffer in function.buffers
        if buffer.handle is not None and buffer.handle not in changing
    }


def _last_offset(axis: Axis, function: Function) -> Expr | None:
    """Return the index of the last offset of an axis if its parent is a root; None otherwise, since offsets
    then have several indices."""
    parent = next((other for other in function.axes if other.name == axis.parent), None)
    is_root = parent is not None and is_dense_root(parent)
    return parent.length if is_root and parent is not None else None
