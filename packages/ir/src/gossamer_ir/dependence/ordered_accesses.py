"""Elements that later iterations of a loop touch lie behind those of earlier ones, or before them.

So it is with the values of a sparse matrix, row by row: row `i` has the positions from `indptr[i]` to
before `indptr[i + 1]`, and `indptr` never decreases. Their indices are no digits of a number (see
`mixed_radix`), but the prover orders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import Access, EnclosingContext
from gossamer_ir.analysis.axis_facts import known_facts
from gossamer_ir.analysis.element_numbers import numbers_of
from gossamer_ir.analysis.init_nests import Values
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.core.build import index_var
from gossamer_ir.dependence.access_forms import with_two_names
from gossamer_ir.nodes import Compare, Expr, For, Function, Range
from gossamer_ir.traversal.walk import buffers_read, substitute

_LATER = "_later"
"""Behind the names of loops in another iteration."""


def are_ordered(
    found: Sequence[Access],
    loop: For,
    *,
    outer: Iterable[For] = (),
    changing: Set[str],
    function: Function,
) -> bool:
    """Whether it is proved that, along a dimension of their buffer, what each iteration of a loop touches
    lies behind everything that earlier iterations touch, or before it. Loops are `outer` ones, the
    iterations change buffers that are `changing`."""
    if any(access.buffer in with_two_names(function) for access in found):
        return False
    if any(
        buffers_read(*access.indices, *access.held.expressions()) & changing for access in found
    ):
        return False
    point = ProgramPoint(function, facts=known_facts(function), binds_all=True)
    if not all(point.is_exact(at) for access in found for at in access.indices):
        return False
    point.begin(loop.body)
    idle = {name for access in found for name in access.held.idle}
    for running in (*outer, loop):
        if running.var not in idle:  # else something is touched where it does not run
            point.assume_loop(running)
    later = index_var(loop.var + _LATER)
    point.assume_loop(replace(loop, var=later.name))
    point.assume(Compare("lt", index_var(loop.var), later))
    spots = _weakest(_spot(access, function=function, point=point) for access in found)
    rank = min((len(spot.indices) for spot in spots), default=0)
    return any(_moves(spots, dim, point=point, loop=loop) for dim in range(rank))


class _Spot(NamedTuple):
    """What touches of one element have in common: its indices and numbers, None in place of the range
    of a search and of what is not known."""

    indices: tuple[Expr | None, ...]
    held: EnclosingContext


def _spot(access: Access, *, function: Function, point: ProgramPoint) -> _Spot:
    indices = tuple(None if isinstance(at, Range) else at for at in access.indices)
    numbers = tuple(
        at if at is not None and point.is_exact(at) else None
        for at in numbers_of(function, access.buffer, access.indices)
    )
    return _Spot((*indices, *numbers), access.held)


def _weakest(spots: Iterable[_Spot]) -> list[_Spot]:
    """Those from which the others follow: what is proved of an element where less holds is true where
    more does."""
    known = {(spot.indices, spot.held.assumptions()): spot for spot in spots}
    return [
        spot
        for (indices, held), spot in known.items()
        if not any(indices == other and less < held for other, less in known)
    ]


def _moves(found: Sequence[_Spot], dim: int, *, point: ProgramPoint, loop: For) -> bool:
    """Whether all accesses of later iterations come after those of earlier ones, or all before them."""
    return any(
        all(
            _is_apart(first, second, dim, point=point, loop=loop, falls=falls)
            for first, second in product(found, found)
        )
        for falls in (False, True)
    )


def _is_apart(
    first: _Spot, second: _Spot, dim: int, *, point: ProgramPoint, loop: For, falls: bool
) -> bool:
    """Whether the first access comes before the second one in a later iteration; where the index `falls`,
    after it."""
    names = (loop.var, *(inner.var for inner in second.held.loops))
    renamed = {name: index_var(name + _LATER) for name in names}
    before, behind = first.indices[dim], second.indices[dim]
    if before is None or behind is None:
        return False
    after: Expr = substitute(behind, renamed)
    with point.scope():
        point.assume_held(first.held)
        point.assume_held(_renamed(second.held, renamed))
        return point.proves(Compare("gt" if falls else "lt", before, after))


def _renamed(held: EnclosingContext, names: Values) -> EnclosingContext:
    """What holds in another iteration, by other names of loops."""
    loops = (replace(loop, var=loop.var + _LATER, body=()) for loop in held.loops)
    conditions = (substitute(condition, names) for condition in held.conditions)
    idle = frozenset(name + _LATER for name in held.idle)
    return EnclosingContext(
        tuple(substitute(loop, names) for loop in loops), tuple(conditions), idle
    )
