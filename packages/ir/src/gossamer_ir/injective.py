"""Index arrays that hold each value once: what different positions load is different.

The coordinates of a sorted fibre without duplicates increase strictly, so a loop over the positions
of one fibre selects a different coordinate in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir import build
from gossamer_ir.affine import UNIT, Affine, affine_of, combine, distance
from gossamer_ir.dtypes import DType
from gossamer_ir.linear import along
from gossamer_ir.nodes import (
    Cast,
    Expr,
    Fact,
    For,
    Load,
    PaddedSlots,
    SortedSegments,
)
from gossamer_ir.walk import free_vars


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


def loaded(expr: Expr) -> Load | None:
    """The load of an integer that an index widens, or is."""
    inner = expr.value if isinstance(expr, Cast) and expr.dtype == "int64" else expr
    if not isinstance(inner, Load) or inner.predicate is not None:
        return None
    # What is not an integer loses its fraction, so that two values may become one.
    return inner if DType.parse(inner.dtype).is_integer else None


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
    first, following = _bound(begin, indptr), _bound(end, indptr)
    if build.integer_value(loop.start) != 0 or first is None or following is None:
        return False
    return distance(following, first) == 1


def _is_in_one_fibre(positions: tuple[Expr, ...], loop: For, indptr: str) -> bool:
    """Whether the last of some positions is the loop's variable, and the loop runs over the fibre below
    the others."""
    *outer, last = positions
    length = affine_of(build.without_guard(loop.extent))
    loads = {count: loaded(atom) for atom, count in length.terms.items()}
    end, begin = loads.get(1), loads.get(-1)
    if length.constant or len(length.terms) != 2 or begin is None or end is None:
        return False
    is_fibre = begin.indices == tuple(outer) and end.indices[:-1] == begin.indices[:-1]
    is_whole = last == build.index_var(loop.var) and build.integer_value(loop.start) == 0
    is_offsets = begin.buffer == end.buffer == indptr
    return (
        is_offsets and is_fibre and is_whole and distance(end.indices[-1], begin.indices[-1]) == 1
    )


def _bound(form: Affine, indptr: str) -> Expr | None:
    """The place in `indptr` of the bound that a form is."""
    if form.constant or list(form.terms.values()) != [1]:
        return None
    (atom,) = form.terms
    load = loaded(atom)
    return load.indices[0] if load is not None and load.buffer == indptr else None
