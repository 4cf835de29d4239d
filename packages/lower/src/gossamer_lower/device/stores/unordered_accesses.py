"""Finds accesses by different statements of which no barrier orders those of different threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.statements.thread_axes import is_block_axis, is_thread_axis
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.statement_kinds import BLOCK_BARRIERS, WRITES
from gossamer_ir.nodes import Atomic, Expr, For, Search, Store
from gossamer_ir.traversal.walk import contains
from gossamer_lower.device.stores.access_sites import AccessSite
from gossamer_lower.device.stores.own_elements import OwnElements


class UnorderedAccesses(NamedTuple):
    """Two accesses that different iterations of a loop over threads or blocks may make of one element."""

    one: AccessSite
    other: AccessSite
    loop: For


def first_unordered(
    sites: Iterable[AccessSite], prover: OwnElements, *, is_axis: Callable[[str | None], bool]
) -> UnorderedAccesses | None:
    """Return the first two of some accesses, which nothing orders, that are not proved to be of different
    elements in different threads, or different blocks, along the axes of a kind. At least one of them writes;
    atomic operations of one kind are ordered. Each store by itself was proved to have elements of its own.
    """
    by_buffer: dict[str, list[AccessSite]] = {}
    for site in sites:
        by_buffer.setdefault(site.node.buffer, []).append(site)
    for accesses in by_buffer.values():
        unordered = _first_of_buffer(_without_implied(accesses), prover, is_axis)
        if unordered is not None:
            return unordered
    return None


def _first_of_buffer(
    sites: Sequence[AccessSite], prover: OwnElements, is_axis: Callable[[str | None], bool]
) -> UnorderedAccesses | None:
    pairs = [pair for pair in combinations(sites, 2) if _may_race(*pair)]
    if not pairs:
        return None
    # One proof for all is faster, but also compares loads with each other.
    if len(pairs) > 1 and _first_shared(sites, prover, is_axis) is None:
        return None
    for one, other in pairs:
        loop = _first_shared((one, other), prover, is_axis)
        if loop is not None:
            return UnorderedAccesses(one, other, loop)
    return None


def _first_shared(
    sites: Sequence[AccessSite], prover: OwnElements, is_axis: Callable[[str | None], bool]
) -> For | None:
    sites = _in_loops_of_each_other(sites)
    loops = loops_of_several(sites[0].loops, is_axis)
    # A search reads any element of a range.
    if any(isinstance(site.node, Search) for site in sites):
        return next(iter(loops), None)
    names = set.intersection(*({loop.var for loop in site.loops} for site in sites))
    common = [loop for loop in sites[0].loops if loop.var in names]
    equal = [*loops_of_several(common, is_block_axis), *synchronized_loops(common, is_axis)]
    equal = [] if is_axis is is_block_axis else equal
    shared = prover.first_shared(sites, loops=loops, equal=equal)
    return None if shared is None or prover.are_different(sites) else shared


def _in_loops_of_each_other(sites: Sequence[AccessSite]) -> list[AccessSite]:
    """Return accesses inside of the loops over blocks and threads of all of them: outside of such a loop,
    each block or thread makes an access, as inside."""
    bound = {loop.var: loop for site in sites for loop in site.loops if loop.thread is not None}
    return [replace(site, loops=(*site.loops, *_missing(site, bound))) for site in sites]


def _missing(site: AccessSite, loops: Mapping[str, For]) -> Iterator[For]:
    around = {loop.var for loop in site.loops}
    return (loop for var, loop in loops.items() if var not in around)


def _without_implied(sites: Sequence[AccessSite]) -> list[AccessSite]:
    """Return accesses without those that are to the elements of a store which happens whenever they do."""
    kept: list[AccessSite] = []
    conditions: dict[tuple[object, ...], list[frozenset[Expr]]] = {}
    for site in sorted(
        sites, key=lambda site: (not isinstance(site.node, Store), len(site.conditions))
    ):
        key = (site.indices, frozenset(loop.var for loop in site.loops))
        is_search = isinstance(site.node, Search)
        if not is_search and any(less <= {*site.conditions} for less in conditions.get(key, ())):
            continue
        kept.append(site)
        if isinstance(site.node, Store):
            conditions.setdefault(key, []).append(frozenset(site.conditions))
    return kept


# Other statements: two accesses race if one of them writes.
def _may_race(one: AccessSite, other: AccessSite) -> bool:
    if isinstance(one.node, Atomic) and isinstance(other.node, Atomic):
        return one.node.op != other.node.op
    return isinstance(one.node, WRITES) or isinstance(other.node, WRITES)


def loops_of_several(loops: Iterable[For], is_axis: Callable[[str | None], bool]) -> list[For]:
    """Return the loops that run several threads or blocks, along axes of a kind."""
    return [loop for loop in loops if is_axis(loop.thread) and integer_value(loop.extent) != 1]


def synchronized_loops(
    loops: Sequence[For], is_axis: Callable[[str | None], bool] = is_thread_axis
) -> Iterator[For]:
    """Yield the serial loops of which the threads along axes run an iteration together: those around loops
    over these threads (`insert_sync`), and those with a barrier."""
    numbers = [number for number, loop in enumerate(loops) if is_axis(loop.thread)]
    for number, loop in enumerate(loops):
        is_around = number < max(numbers, default=0)
        if loop.thread is None and (is_around or contains(BLOCK_BARRIERS, *loop.body)):
            yield loop
