"""Proves that later iterations of a loop access only elements after (or only before) those of earlier ones.

An example are the values of a sparse matrix, row by row: row `i` has the positions `indptr[i]`, ...,
`indptr[i + 1] - 1`, and `indptr` never decreases. Such indices are not mixed-radix numbers (`mixed_radix`),
but the prover can order them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import Access, EnclosingContext
from gossamer_ir.analysis.axes.axis_facts import known_facts
from gossamer_ir.analysis.axes.element_numbers import numbers_of
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.affine import Affine, affine_of
from gossamer_ir.arith.nonaffine_bounds import strip_widening
from gossamer_ir.arith.offsets import load_of_index
from gossamer_ir.core.build import ONE, add, index_var
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Compare, Distinct, Expr, For, Function, Load, Range, Var
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.substitute import substitute


def are_apart(
    listed: Sequence[Access],
    loop: For,
    *,
    outer: Iterable[For] = (),
    changing: Set[str],
    function: Function,
) -> bool:
    """Return whether accesses of different iterations of a loop are proved to be to different elements by an
    order: that of their indices, or that of the places in an array without duplicates from which all indices
    along one dimension are loaded. Arguments are those of `are_ordered`.

    >>> from gossamer_ir.analysis.accesses.buffer_accesses import accesses
    >>> from gossamer_ir.core.build import ZERO, index, mul
    >>> from gossamer_ir.nodes import Store
    >>> place = mul(index_var("i"), index(2))
    >>> loop = For("i", ZERO, index(4), (Store("Y", (Load("P", (place,), "int64"),), ONE),))
    >>> listed = list(accesses(loop.body, buffers={"Y"}))
    >>> for facts in ((), (Distinct("P"),)):
    ...     function = Function("f", (), (loop,), facts=facts)
    ...     are_apart(listed, loop, changing={"Y"}, function=function)
    False
    True
    """
    if are_ordered(listed, loop, outer=outer, changing=changing, function=function):
        return True
    return any(
        are_ordered(places, loop, outer=outer, changing=changing, function=function)
        for places in _places_in_distinct(listed, changing, function)
    )


def _places_in_distinct(
    listed: Sequence[Access], changing: Set[str], function: Function
) -> Iterator[list[Access]]:
    """Yield accesses of an array without duplicates: those that load the indices of all accesses along a
    dimension. Different places there are different indices."""
    facts = fact_index(known_facts(function)).facts_of_type(Distinct)
    distinct = {fact.buffer for fact in facts} - changing
    if any(access.buffer in buffers_with_aliasing_indices(function) for access in listed):
        return
    ndim = min((len(access.indices) for access in listed), default=0) if distinct else 0
    for dimension in range(ndim):
        loads = [_load_along(access, dimension) for access in listed]
        distinct_loads = [load for load in loads if load is not None and load.buffer in distinct]
        if len(distinct_loads) == len(loads) and len({load.buffer for load in distinct_loads}) == 1:
            yield [
                replace(access, buffer=load.buffer, indices=load.indices)
                for access, load in zip(listed, distinct_loads, strict=True)
            ]


def _load_along(access: Access, dimension: int) -> Load | None:
    index = access.indices[dimension]
    return None if isinstance(index, Range) else load_of_index(index)


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

    >>> from gossamer_ir.analysis.accesses.buffer_accesses import accesses
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
    listed = [_without_changing_conditions(access, changing) for access in listed]
    if any(_reads_of(access) & changing for access in listed):
        return False
    point = ProgramPoint(function, facts=known_facts(function), binds_all=True)
    if not all(point.is_exact(at) for access in listed for at in access.indices):
        return False
    _assume_two_iterations(point, listed, loop=loop, outer=outer)
    sites = _weakest_sites(
        _access_site(access, function=function, point=point) for access in listed
    )
    ndim = min((len(site.indices) for site in sites), default=0)
    return any(
        _is_ordered_along(sites, dimension, point=point, loop=loop) for dimension in range(ndim)
    )


def _reads_of(access: Access) -> Set[str]:
    return buffers_read(*access.indices, *access.context.exprs())


def _assume_two_iterations(
    point: ProgramPoint, listed: Sequence[Access], *, loop: For, outer: Iterable[For]
) -> None:
    """Assume an iteration of a loop and a later one, inside the enclosing loops."""
    # Conditions around the accesses may be assumed if the loop itself does not change them.
    point.restrict_changing(loop.body)
    # There are accesses (of an init) without an iteration of these loops.
    idle = {name for access in listed for name in access.context.idle}
    for running in (*outer, loop):
        if running.var not in idle:
            point.assume_loop(running)
    # Two copies of the loop variable, the later one larger: everything that depends on it is copied, too.
    later = index_var(loop.var + _LATER)
    point.assume_loop(replace(loop, var=later.name))
    point.assume(Compare("lt", index_var(loop.var), later))


def _without_changing_conditions(access: Access, changing: Set[str]) -> Access:
    """Return the access without the conditions around it that read what the loop writes. They may not be
    assumed, and without them, it may happen more often."""
    context = access.context
    kept = tuple(
        condition for condition in context.conditions if not buffers_read(condition) & changing
    )
    if len(kept) == len(context.conditions):
        return access
    return replace(access, context=replace(context, conditions=kept))


class _AccessSite(msgspec.Struct, frozen=True):
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
    same indices and more assumptions, whatever the loops around it are called: loops that run one after the
    other over the same range are one case."""
    anonymous_sites = {_anonymous(site): site for site in sites}
    return [
        site
        for (indices, assumed), site in anonymous_sites.items()
        if not any(indices == other and less < assumed for other, less in anonymous_sites)
    ]


def _anonymous(site: _AccessSite) -> tuple[tuple[Expr | None, ...], frozenset[object]]:
    """Return the indices and the assumptions of a site, with the loops around it numbered."""
    numbered = _loop_numbers(site)
    indices = tuple(None if at is None else substitute(at, numbered) for at in site.indices)
    context = _rename_loops(site.context, numbered)
    return indices, context.assumptions()


def _loop_numbers(site: _AccessSite) -> dict[str, Var]:
    """Return variables in place of those of the loops around a site, whatever these are called."""
    names = [loop.var for loop in site.context.loops]
    return {name: index_var(str(number)) for number, name in enumerate(names)}


def _is_ordered_along(
    sites: Sequence[_AccessSite], dimension: int, *, point: ProgramPoint, loop: For
) -> bool:
    """Return whether all accesses of later iterations come after those of earlier ones, or all before
    them."""
    if _are_in_segments(sites, dimension, point=point, loop=loop):
        return True
    for falls in (False, True):
        last = _extreme_sites(sites, dimension, is_greatest=not falls)
        first = _extreme_sites(sites, dimension, is_greatest=falls)
        # Unrolled loops have hundreds of sites, and each is compared with each.
        pairs = [(last, first)]
        if any(len(kept) < len(sites) for kept in (last, first)):
            pairs.append((sites, sites))
        for earlier, others in pairs:
            later = [_in_later_iteration(site, loop) for site in others]
            if all(_is_apart(site, later, dimension, point=point, falls=falls) for site in earlier):
                return True
    return False


def _extreme_sites(
    sites: Sequence[_AccessSite], dimension: int, *, is_greatest: bool
) -> Sequence[_AccessSite]:
    """Return one for all sites in equal loops whose indices along a dimension differ by constants: that with
    the greatest index, or the least, and with the conditions that all of them have. If its index is ordered,
    those of the others are."""
    groups: dict[object, list[_NumberedSite]] = {}
    for site in sites:
        index = site.indices[dimension]
        if index is None:
            return sites
        numbered = _numbered_site(site, index)
        key = (frozenset(numbered.form.terms.items()), numbered.loops)
        groups.setdefault(key, []).append(numbered)
    extreme = max if is_greatest else min
    return [
        _with_conditions_of_all(extreme(group, key=lambda numbered: numbered.form.constant), group)
        for group in groups.values()
    ]


class _NumberedSite(NamedTuple):
    """A site, with its index along a dimension, its loops and its conditions in terms of the numbers of
    loops."""

    site: _AccessSite
    form: Affine
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]


def _numbered_site(site: _AccessSite, index: Expr) -> _NumberedSite:
    numbered = _loop_numbers(site)
    context = _rename_loops(site.context, numbered)
    loops = tuple(loop for loop in context.loops if loop.var not in context.idle)
    return _NumberedSite(site, affine_of(substitute(index, numbered)), loops, context.conditions)


def _with_conditions_of_all(chosen: _NumberedSite, group: Sequence[_NumberedSite]) -> _AccessSite:
    common = set(chosen.conditions).intersection(*(numbered.conditions for numbered in group))
    context = chosen.site.context
    kept = tuple(
        condition
        for condition, numbered in zip(context.conditions, chosen.conditions, strict=True)
        if numbered in common
    )
    return replace(chosen.site, context=replace(context, conditions=kept))


def _are_in_segments(
    sites: Sequence[_AccessSite], dimension: int, *, point: ProgramPoint, loop: For
) -> bool:
    """Return whether all accesses of an iteration are between an offset, such as `P[i]`, and that of the next
    iteration, where offsets never decrease.

    This takes a proof for each site, not for each pair of sites.
    """
    offsets = [_offsets_in(site.indices[dimension], loop) for site in sites]
    common = offsets[0].intersection(*offsets[1:]) if offsets else set()
    if len(common) != 1:
        return False
    (begin,) = common
    end = substitute(begin, {loop.var: add(index_var(loop.var), ONE)})
    begin = substitute(begin, {loop.var: index_var(loop.var + _LATER)})
    if not point.proves(Compare("le", end, begin)):
        return False
    later = (_in_later_iteration(site, loop) for site in sites)
    return all(_is_below(site, dimension, end, point) for site in sites) and all(
        _is_from(site, dimension, begin, point) for site in later
    )


def _is_below(site: _AccessSite, dimension: int, end: Expr, point: ProgramPoint) -> bool:
    at = site.indices[dimension]
    return at is not None and _is_proved_in(site.context, Compare("lt", at, end), point)


def _is_from(site: _AccessSite, dimension: int, begin: Expr, point: ProgramPoint) -> bool:
    at = site.indices[dimension]
    return at is not None and _is_proved_in(site.context, Compare("le", begin, at), point)


def _offsets_in(index: Expr | None, loop: For) -> set[Expr]:
    """Return the terms of an index that are loaded at the variable of a loop."""
    if index is None:
        return set()
    loop_indices = (index_var(loop.var),)
    return {
        atom
        for atom, factor in affine_of(index).terms.items()
        if factor == 1
        and isinstance(load := strip_widening(atom), Load)
        and load.indices == loop_indices
    }


def _in_later_iteration(site: _AccessSite, loop: For) -> _AccessSite:
    # Inner loops of the later iteration are different ones: their variables are independent.
    names = (loop.var, *(inner.var for inner in site.context.loops))
    renamed = {name: index_var(name + _LATER) for name in names}
    indices = tuple(None if at is None else substitute(at, renamed) for at in site.indices)
    return _AccessSite(indices, _rename_loops(site.context, renamed))


def _is_apart(
    site: _AccessSite,
    later: Iterable[_AccessSite],
    dimension: int,
    *,
    point: ProgramPoint,
    falls: bool,
) -> bool:
    """Return whether all accesses of a later iteration are proved to come after one of an earlier iteration
    (before it, if the index `falls`)."""
    apart = [
        (_comparison(site.indices[dimension], other.indices[dimension], falls=falls), other.context)
        for other in later
    ]
    # Most often the iterations alone tell; the prover remembers the answer for all sites.
    open_cases = [case for case in apart if case[0] is None or not point.proves(case[0])]
    if not open_cases:
        return True
    with point.scope():
        point.assume_context(site.context)
        return all(
            condition is not None and _is_proved_in(context, condition, point)
            for condition, context in open_cases
        )


def _comparison(earlier: Expr | None, later: Expr | None, *, falls: bool) -> Compare | None:
    """Return the condition that an index of a later iteration is greater (less, if it `falls`)."""
    if earlier is None or later is None:
        return None
    return Compare("gt" if falls else "lt", earlier, later)


def _is_proved_in(context: EnclosingContext, condition: Compare, point: ProgramPoint) -> bool:
    with point.scope():
        point.assume_context(context)
        return point.proves(condition)


def _rename_loops(context: EnclosingContext, names: Mapping[str, Var]) -> EnclosingContext:
    """Return the context with other names for all its loops, and without the bodies of these."""
    loops = (replace(loop, var=names[loop.var].name, body=()) for loop in context.loops)
    conditions = (substitute(condition, names) for condition in context.conditions)
    idle = frozenset(names[name].name if name in names else name for name in context.idle)
    return EnclosingContext(
        tuple(substitute(loop, names) for loop in loops), tuple(conditions), idle
    )
