"""Elements that later iterations of a loop touch lie behind those of earlier ones, or before them.

So it is with the values of a sparse matrix, row by row: row `i` has the positions from `indptr[i]` to
before `indptr[i + 1]`, and `indptr` never decreases. Their indices are no digits of a number (see
`digits`), but the prover orders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import partial
from itertools import product
from typing import NamedTuple

from gossamer_ir.accesses import with_two_names
from gossamer_ir.axis_facts import order_facts
from gossamer_ir.build import ONE, index_var
from gossamer_ir.magnitudes import Magnitudes, magnitudes_of
from gossamer_ir.nodes import Binary, Expr, For, Function, Range
from gossamer_ir.numbers import numbers_of
from gossamer_ir.prove import Prover
from gossamer_ir.touches import Held, Touch, Values
from gossamer_ir.walk import buffers_read, substitute

_LATER = "_later"
"""Behind the names of loops in another iteration."""


def are_ordered(
    found: Sequence[Touch],
    loop: For,
    *,
    outer: Iterable[For] = (),
    changing: Set[str],
    function: Function,
) -> bool:
    """Whether it is proved that, along a dimension of their buffer, what each iteration of a loop touches
    lies behind everything that earlier iterations touch, or before it. Loops are `outer` ones, the
    iterations change buffers that are `changing`."""
    if any(touch.buffer in with_two_names(function) for touch in found):
        return False
    if any(buffers_read(*touch.indices, *touch.held.expressions()) & changing for touch in found):
        return False
    magnitudes = magnitudes_of(function)
    if not all(magnitudes.is_exact(at) for touch in found for at in touch.indices):
        return False
    numbered = partial(_spot, function=function, magnitudes=magnitudes)
    prover = _within_loops((*outer, loop), found, function=function)
    later = index_var(loop.var + _LATER)
    if _is_exact(loop, magnitudes):
        prover.assume_range(later.name, loop.start, loop.extent)
    prover.assume_nonnegative(_gap(index_var(loop.var), later))
    spots = _weakest(map(numbered, found))
    rank = min((len(spot.indices) for spot in spots), default=0)
    return any(_moves(spots, dim, prover=prover, loop=loop) for dim in range(rank))


def _within_loops(loops: Iterable[For], found: Iterable[Touch], *, function: Function) -> Prover:
    """A prover that knows that some loops run, apart from those without which what is touched is touched,
    too."""
    prover, magnitudes = Prover(order_facts(function)), magnitudes_of(function)
    idle = {name for touch in found for name in touch.held.idle}
    for loop in loops:
        if loop.var not in idle and _is_exact(loop, magnitudes):
            prover.assume_range(loop.var, loop.start, loop.extent)
    return prover


class _Spot(NamedTuple):
    """What touches of one element have in common: its indices and numbers, None in place of the range
    of a search and of what is not known."""

    indices: tuple[Expr | None, ...]
    held: Held


def _spot(touch: Touch, *, function: Function, magnitudes: Magnitudes) -> _Spot:
    """What holds is left out where it may wrap around: the prover takes integers to be unbounded."""
    indices = tuple(None if isinstance(at, Range) else at for at in touch.indices)
    numbers = tuple(
        at if at is not None and magnitudes.is_exact(at) else None
        for at in numbers_of(function, touch.buffer, touch.indices)
    )
    held = touch.held
    unknown = {found.var for found in held.loops if not _is_exact(found, magnitudes)}
    conditions = tuple(found for found in held.conditions if magnitudes.is_exact(found))
    return _Spot((*indices, *numbers), Held(held.loops, conditions, held.idle | unknown))


def _is_exact(loop: For, magnitudes: Magnitudes) -> bool:
    """Whether neither end of a loop wraps around."""
    return magnitudes.is_exact(Binary("add", loop.start, loop.extent))


def _weakest(spots: Iterable[_Spot]) -> list[_Spot]:
    """Those from which the others follow: what is proved of an element where less holds is true where
    more does."""
    known = {(spot.indices, spot.held.assumptions()): spot for spot in spots}
    return [
        spot
        for (indices, held), spot in known.items()
        if not any(indices == other and less < held for other, less in known)
    ]


def _moves(found: Sequence[_Spot], dim: int, *, prover: Prover, loop: For) -> bool:
    """Whether all accesses of later iterations come after those of earlier ones, or all before them."""
    return any(
        all(
            _is_apart(first, second, dim, prover=prover, loop=loop, falls=falls)
            for first, second in product(found, found)
        )
        for falls in (False, True)
    )


def _is_apart(
    first: _Spot, second: _Spot, dim: int, *, prover: Prover, loop: For, falls: bool
) -> bool:
    """Whether the first access comes before the second one in a later iteration; where the index `falls`,
    after it."""
    names = (loop.var, *(inner.var for inner in second.held.loops))
    renamed = {name: index_var(name + _LATER) for name in names}
    before, behind = first.indices[dim], second.indices[dim]
    if before is None or behind is None:
        return False
    after: Expr = substitute(behind, renamed)
    with prover.scope():
        _assume(prover, first.held, {})
        _assume(prover, second.held, renamed)
        gap = _gap(after, before) if falls else _gap(before, after)
        return prover.proves_nonnegative(gap)


def _gap(first: Expr, second: Expr) -> Expr:
    """Nonnegative where first < second."""
    return Binary("sub", Binary("sub", second, first), ONE)


def _assume(prover: Prover, held: Held, renamed: Values) -> None:
    for inner in held.loops:
        if inner.var in held.idle:
            continue
        start, extent = (substitute(part, renamed) for part in (inner.start, inner.extent))
        prover.assume_range(_name(inner.var, renamed), start, extent)
    for condition in held.conditions:
        prover.assume(substitute(condition, renamed))


def _name(var: str, renamed: Values) -> str:
    return var + _LATER if var in renamed else var
