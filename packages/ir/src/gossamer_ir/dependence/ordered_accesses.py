"""Proves that later iterations of a loop access only elements after (or only before) those of earlier ones.

An example are the values of a sparse matrix, row by row: row `i` has the positions `indptr[i]`, ...,
`indptr[i + 1] - 1`, and `indptr` never decreases. Such indices are not mixed-radix numbers (`mixed_radix`),
but the prover can order them.
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
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.nodes import Compare, Expr, For, Function, Range
from gossamer_ir.traversal.references import buffers_read
from gossamer_ir.traversal.substitute import substitute

_LATER = "_later"
"""The suffix of loop variables of the later iteration."""


def are_ordered(
    listed: Sequence[Access],
    loop: For,
    *,
    outer: Iterable[For] = (),
    changing: Set[str],
    function: Function,
) -> bool:
    """Return whether, along one dimension of the buffer, all accesses of each iteration of a loop are proved
    to come after those of all earlier iterations, or all before them.

    `outer` are the enclosing loops, `changing` the buffers that the loop writes.

    >>> from gossamer_ir.analysis.accesses import accesses
    >>> from gossamer_ir.core.build import ONE, ZERO, index, mul, sub
    >>> from gossamer_ir.nodes import Store
    >>> i = index_var("i")
    >>> for at in (mul(i, index(2)), sub(index(3), i), mul(i, sub(index(3), i))):
    ...     loop = For("i", ZERO, index(4), (Store("Y", (at,), ONE),))
    ...     function = Function("f", (), (loop,))
    ...     are_ordered(list(accesses(loop.body)), loop, changing={"Y"}, function=function)
    True
    True
    False
    """
    # Such a buffer has two index tuples for one element, so an order of the indices proves nothing.
    if any(access.buffer in buffers_with_aliasing_indices(function) for access in listed):
        return False
    if any(
        buffers_read(*access.indices, *access.context.expressions()) & changing for access in listed
    ):
        return False
    point = ProgramPoint(function, facts=known_facts(function), binds_all=True)
    if not all(point.is_exact(at) for access in listed for at in access.indices):
        return False
    # Conditions around the accesses may be assumed if the loop itself does not change them.
    point.begin(loop.body)
    idle = {name for access in listed for name in access.context.idle}
    for running in (*outer, loop):
        if (
            running.var not in idle
        ):  # otherwise there are accesses (of an init) without an iteration of it
            point.assume_loop(running)
    # Two copies of the loop variable, the later one larger: everything that depends on it is copied, too.
    later = index_var(loop.var + _LATER)
    point.assume_loop(replace(loop, var=later.name))
    point.assume(Compare("lt", index_var(loop.var), later))
    sites = _weakest_sites(
        _access_site(access, function=function, point=point) for access in listed
    )
    rank = min((len(site.indices) for site in sites), default=0)
    return any(_is_ordered_along(sites, dim, point=point, loop=loop) for dim in range(rank))


class _AccessSite(NamedTuple):
    """The indices and element numbers of an access, None if unknown or the range of a search, and its
    context. Loads and stores with equal sites need to be compared once."""

    indices: tuple[Expr | None, ...]
    context: EnclosingContext


def _access_site(access: Access, *, function: Function, point: ProgramPoint) -> _AccessSite:
    indices = tuple(None if isinstance(at, Range) else at for at in access.indices)
    numbers = tuple(
        at if at is not None and point.is_exact(at) else None
        for at in numbers_of(function, access.buffer, access.indices)
    )
    return _AccessSite((*indices, *numbers), access.context)


def _weakest_sites(sites: Iterable[_AccessSite]) -> list[_AccessSite]:
    """Return the sites with minimal assumptions. A proof for one of them holds for every site that has the
    same indices and more assumptions."""
    known = {(site.indices, site.context.assumptions()): site for site in sites}
    return [
        site
        for (indices, assumed), site in known.items()
        if not any(indices == other and less < assumed for other, less in known)
    ]


def _is_ordered_along(
    sites: Sequence[_AccessSite], dim: int, *, point: ProgramPoint, loop: For
) -> bool:
    """Return whether all accesses of later iterations come after those of earlier ones, or all before
    them."""
    return any(
        all(
            _is_apart(first, second, dim, point=point, loop=loop, falls=falls)
            for first, second in product(sites, sites)
        )
        for falls in (False, True)
    )


def _is_apart(
    first: _AccessSite,
    second: _AccessSite,
    dim: int,
    *,
    point: ProgramPoint,
    loop: For,
    falls: bool,
) -> bool:
    """Return whether a later iteration's access is proved to come after (before, if the index `falls`)."""
    # Inner loops of the later iteration are different ones: their variables are independent.
    names = (loop.var, *(inner.var for inner in second.context.loops))
    renamed = {name: index_var(name + _LATER) for name in names}
    earlier, other = first.indices[dim], second.indices[dim]
    if earlier is None or other is None:
        return False
    later: Expr = substitute(other, renamed)
    apart = Compare("gt" if falls else "lt", earlier, later)
    # Most often the iterations alone tell; the prover remembers the answer for all sites.
    if point.proves(apart):
        return True
    with point.scope():
        point.assume_context(first.context)
        point.assume_context(_with_renamed_loops(second.context, renamed))
        return point.proves(apart)


def _with_renamed_loops(context: EnclosingContext, names: Values) -> EnclosingContext:
    """Return the context in the later iteration, with renamed loop variables."""
    loops = (replace(loop, var=loop.var + _LATER, body=()) for loop in context.loops)
    conditions = (substitute(condition, names) for condition in context.conditions)
    idle = frozenset(name + _LATER for name in context.idle)
    return EnclosingContext(
        tuple(substitute(loop, names) for loop in loops), tuple(conditions), idle
    )
