"""Injective indices: loads from index arrays whose values differ for different positions.

The coordinates of a sorted fiber without duplicates strictly increase, so a loop over the positions of one
fiber selects a different coordinate in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.accesses.linear_form import coefficient_and_rest
from gossamer_ir.arith.affine import ONE_FORM, affine_of, expr_of
from gossamer_ir.arith.offsets import load_of_index, offset_of, offset_of_length
from gossamer_ir.core.build import index_var, integer_value, unconditional_extent
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Expr, Fact, For, SortedSegments
from gossamer_ir.traversal.free_vars import free_vars


def is_injective(expr: Expr, loop: For, facts: Iterable[Fact]) -> bool:
    """Return whether an index is injective in a loop because it reads one strictly increasing segment (one
    fiber, at the position stage).

    `facts` must hold wherever the loop runs (`invariant_facts`). Unused slots of a padded axis repeat one
    value, so padded arrays are never injective.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> from gossamer_ir.nodes import Load
    >>> loop, column = For("p", ZERO, index(8), ()), Load("J", (index_var("p"),), "int64")
    >>> is_injective(column, loop, [SortedSegments("J", None, unique=True)])
    True
    >>> is_injective(column, loop, [])
    False
    """
    load = load_of_index(expr)
    if load is None:
        return False
    *outer, last = load.indices
    # Each iteration would read another segment, and two segments may hold the same coordinate.
    if any(loop.var in free_vars(at) for at in outer):
        return False
    segments = fact_index(facts).about(load.buffer, SortedSegments)
    return any(
        _is_in_one_fiber(load.indices, loop, fact.indptr)
        if outer and fact.indptr is not None
        else _is_in_one_segment(last, loop, fact.indptr)
        for fact in segments
        if fact.unique
    )


def _is_in_one_segment(position: Expr, loop: For, indptr: str | None) -> bool:
    """Return whether a position is the loop variable plus the beginning of a segment, and the loop ends where
    the segment does. Without `indptr` the segment is a row, which any range of positions is part of."""
    parts = coefficient_and_rest(affine_of(position), loop.var)
    # With 2 * p, the positions of one iteration could belong to the next segment.
    if parts is None or parts[0] != ONE_FORM:
        return False
    _, begin = parts
    if indptr is None:
        return True
    # A guarded extent is 0 or its first side; with 0 iterations there is nothing to distinguish.
    end = begin + affine_of(unconditional_extent(loop.extent))
    offset = offset_of(expr_of(begin), expr_of(end))
    is_whole = integer_value(loop.start) == 0
    return is_whole and offset is not None and offset.buffer == indptr


def _is_in_one_fiber(positions: tuple[Expr, ...], loop: For, indptr: str) -> bool:
    """Return whether the last position is the loop variable, and the loop runs over the fiber that the other
    positions select."""
    *outer, last = positions
    offset = offset_of_length(unconditional_extent(loop.extent))
    is_whole = last == index_var(loop.var) and integer_value(loop.start) == 0
    return (
        is_whole
        and offset is not None
        and (offset.buffer, offset.indices) == (indptr, tuple(outer))
    )
