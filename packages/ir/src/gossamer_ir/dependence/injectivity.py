"""Index arrays that hold each value once: what different positions load is different.

The coordinates of a sorted fibre without duplicates increase strictly, so a loop over the positions
of one fibre selects a different coordinate in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.analysis.linear_form import along
from gossamer_ir.arith.affine import UNIT, affine_of, combine, expr_of
from gossamer_ir.arith.offsets import loaded, offset_of, offset_of_length
from gossamer_ir.core import build
from gossamer_ir.nodes import (
    Expr,
    Fact,
    For,
    PaddedSlots,
    SortedSegments,
)
from gossamer_ir.traversal.walk import free_vars


def is_injective(expr: Expr, loop: For, facts: Iterable[Fact]) -> bool:
    """Whether an index has a different value in each iteration of a loop, because it loads the
    positions of one segment from an array that increases strictly within segments; at the position
    stage those of one fibre.

    Facts are those that hold wherever the loop runs (`lasting_facts`). Slots of a padded axis repeat
    one value, so nothing is concluded about them.
    """
    load = loaded(expr)
    if load is None:
        return False
    *outer, last = load.indices
    if any(loop.var in free_vars(at) for at in outer):
        return False
    known = [fact for fact in facts if getattr(fact, "buffer", None) == load.buffer]
    if any(isinstance(fact, PaddedSlots) for fact in known):
        return False
    segments = [fact for fact in known if isinstance(fact, SortedSegments) and fact.unique]
    return any(
        _is_in_one_fibre(load.indices, loop, fact.indptr)
        if outer and fact.indptr is not None
        else _is_in_one_segment(last, loop, fact.indptr)
        for fact in segments
    )


def _is_in_one_segment(position: Expr, loop: For, indptr: str | None) -> bool:
    """Whether a position is the loop's variable counted from the begin of one segment, and the loop
    ends where the segment does; without `indptr`, whether it runs along one row."""
    parts = along(affine_of(position), loop.var)
    if parts is None or parts[0] != UNIT:
        return False
    _, begin = parts
    if indptr is None:
        return True
    end = combine(begin, affine_of(build.without_guard(loop.extent)), 1)
    offset = offset_of(expr_of(begin), expr_of(end))
    is_whole = build.integer_value(loop.start) == 0
    return is_whole and offset is not None and offset.buffer == indptr


def _is_in_one_fibre(positions: tuple[Expr, ...], loop: For, indptr: str) -> bool:
    """Whether the last of some positions is the loop's variable, and the loop runs over the fibre below
    the others."""
    *outer, last = positions
    offset = offset_of_length(build.without_guard(loop.extent))
    is_whole = last == build.index_var(loop.var) and build.integer_value(loop.start) == 0
    return (
        is_whole
        and offset is not None
        and (offset.buffer, offset.indices) == (indptr, tuple(outer))
    )
