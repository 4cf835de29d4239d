"""The facts that axes guarantee about their index arrays, for all stages."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.analysis.invariants import invariant_facts, mutable_buffers
from gossamer_ir.core.build import ONE, ZERO, add
from gossamer_ir.nodes import (
    Axis,
    CompressedFixed,
    CompressedVaried,
    DenseFixed,
    DenseVaried,
    Expr,
    Fact,
    Function,
    HasValue,
    InRange,
    Monotone,
    PaddedSlots,
    SortedSegments,
)
from gossamer_ir.support.identity_cache import memoize_by_identity


def facts_of_axis(
    axis: Axis,
    *,
    indptr: str | None,
    indices: str | None,
    last: Expr | None = None,
    total: Expr | None = None,
) -> Iterator[Fact]:
    """Yield the facts that an axis guarantees about its index arrays.

    `indptr` and `indices` are the names to use for the arrays, None for an array that does not exist or is
    to be left out. `last` is the index of the last offset if offsets have a single index; `total` is the
    number of elements of the axis.

    >>> from gossamer_ir.core.build import index_var
    >>> n, nnz = index_var("n"), index_var("nnz")
    >>> axis = CompressedVaried("J", "I", n, nnz, "indptr", "indices")
    >>> [type(fact).__name__ for fact in facts_of_axis(axis, indptr="P", indices="C")]
    ['Monotone', 'InRange', 'SortedSegments']
    >>> list(facts_of_axis(axis, indptr=None, indices="C"))  # the ends of segments are unknown
    [InRange(buffer='C', low=Const(dtype='int64', text='0'), high=Var(name='n', dtype='int64'))]
    """
    if indptr is not None and isinstance(axis, (DenseVaried, CompressedVaried)):
        if total is not None:
            yield InRange(indptr, ZERO, add(total, ONE))
        yield Monotone(indptr)
        if last is not None:
            yield HasValue(indptr, ZERO, ZERO)
        if last is not None and axis.nnz is not None:
            yield HasValue(indptr, last, axis.nnz)
    if indices is not None and isinstance(axis, (CompressedFixed, CompressedVaried)):
        yield InRange(indices, ZERO, add(axis.length, ONE) if axis.padded else axis.length)
        if axis.sorted and (indptr is not None or isinstance(axis, CompressedFixed)):
            yield SortedSegments(indices, indptr, axis.unique)
        if axis.padded:
            yield PaddedSlots(indices, axis.length)


@memoize_by_identity
def known_facts(function: Function) -> tuple[Fact, ...]:
    """Return the facts about buffers that a function does not write: declared ones, and those from axes."""
    return (*invariant_facts(function), *_axis_facts(function))


def _axis_facts(function: Function) -> Iterator[Fact]:
    """Yield the facts from axes about index buffers that the function does not write."""
    names = _read_only_buffers(function) if function.axes else {}
    for axis in function.axes:
        indptr, indices = (names.get(getattr(axis, of, None)) for of in ("indptr", "indices"))
        yield from facts_of_axis(
            axis, indptr=indptr, indices=indices, last=_last_offset(axis, function)
        )


def _read_only_buffers(function: Function) -> dict[str | None, str]:
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
    is_root = isinstance(parent, DenseFixed) and parent.parent is None
    return parent.length if is_root and parent is not None else None
