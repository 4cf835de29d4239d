"""Required region: the elements of an earlier block that one iteration of a loop reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import reduce
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import Access, accesses
from gossamer_ir.analysis.accesses.linear_form import form_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.arith.affine import ONE_FORM, Affine, distance, product_of
from gossamer_ir.core.build import ZERO
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.dependence.mixed_radix import (
    count_of_values,
    digits_of,
    lowest_loops,
    without_loop_terms,
)
from gossamer_ir.nodes import Block, BlockIter, Compare, Expr, For, Store, Var
from gossamer_ir.traversal.buffer_uses import buffers_accessed, outer_writes
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.legality.stored_values import is_own_value
from gossamer_schedule.predicates.block_predicates import less_than
from gossamer_schedule.regions.computing_iters import computing_iters
from gossamer_schedule.regions.iterator_dimensions import determined_iters
from gossamer_schedule.regions.produced import ProducedRange
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops

RequiredRegion: TypeAlias = dict[str, ProducedRange]


def required_region(
    cursor: Cursor[Block], own_loops: Sequence[For], target: Cursor[For], *, changing: Set[str]
) -> RequiredRegion:
    """Return, for each iterator of a block, the range that one iteration of the target loop requires.

    Iterators missing from the result need their full domain. No range depends on a buffer in `changing`.
    """
    block = cursor.node
    names = {loop.var for loop in own_loops}
    free = {
        iterator.var
        for iterator in block.iters
        if isinstance(iterator.value, Var) and iterator.value.name in names
    }
    regions: list[RequiredRegion] = []
    for access in accesses(target.node.body, values=values_at(target)):
        if access.buffer in outer_writes((block,)):
            # Such an element has two index tuples, and the block may have written it by the other one.
            is_named_twice = access.buffer in buffers_with_aliasing_indices(cursor.function)
            matched = None if is_named_twice else _iterator_values_at(cursor, access, free=free)
            if matched is None:
                return {}
            regions.append(
                _region_of_access(cursor, matched, access, target=target, changing=changing)
            )
    return _ranges_in_one_fiber(reduce(_union_of_regions, regions), block, free) if regions else {}


def _ranges_in_one_fiber(region: RequiredRegion, block: Block, free: Set[str]) -> RequiredRegion:
    """Return the ranges of iterators whose domain is one fiber.

    If an iterator that the domain depends on has several values, their fibers need different ranges.
    """
    kept: RequiredRegion = {}
    for iterator in block.iters:
        above = free_vars(iterator.domain) & free
        is_one_fiber = all(name in kept and kept[name].count == ONE_FORM for name in above)
        if iterator.var in region and is_one_fiber:
            kept[iterator.var] = region[iterator.var]
    return kept


def _union_of_regions(first: RequiredRegion, second: RequiredRegion) -> RequiredRegion:
    """Return the ranges that contain those of both regions, where they are known."""
    hulls = {
        name: _hull_of_ranges(first[name], second[name]) for name in first.keys() & second.keys()
    }
    return {name: hull for name, hull in hulls.items() if hull is not None}


def _hull_of_ranges(first: ProducedRange, second: ProducedRange) -> ProducedRange | None:
    """Return the smallest range that contains both; None unless their counts, and the distance between their
    bases, are constant."""
    if first == second or first.count is None or second.count is None:
        return first if first == second else None
    offset = distance(second.base, first.base)
    # A symbolic hull would need `max`, which loops of the moved block cannot have as a simple extent.
    if offset is None or not (first.count.is_constant and second.count.is_constant):
        return None
    if offset < 0:
        return _hull_of_ranges(second, first)
    count = max(first.count.constant, offset + second.count.constant)
    return replace(first, count=Affine({}, count), is_within=first.is_within and second.is_within)


def _iterator_values_at(
    cursor: Cursor[Block], access: Access, *, free: set[str]
) -> dict[str, Expr] | None:
    """Return the values of the iterators at which the block writes an accessed element, None if not known.

    Reduction iterators have no value: all of their iterations may contribute to the element, and its init
    runs before their loops.
    """
    block = cursor.node
    stores = (store for store in collect(Store, block) if store.buffer == access.buffer)
    # Otherwise the element does not tell which point has written it.
    if not all(
        is_own_value(block, store, determined=determined_iters(cursor, store)) for store in stores
    ):
        return None
    # Iterators that do not move keep the values that the loops around give them.
    fixed = {iterator.var: iterator.value for iterator in block.iters if iterator.var not in free}
    values = fixed | values_at(cursor)
    matched = computing_iters(block, access, free=free, values=values)
    if matched is None:
        return None
    spatial = {iterator.var for iterator in block.iters if iterator.kind == "S"}
    chosen = {name: value for name, value in matched.items() if name in spatial}
    return chosen | {at: resolve(fixed[at], values) for at in fixed}


def _region_of_access(
    cursor: Cursor[Block],
    matched: Mapping[str, Expr],
    access: Access,
    *,
    target: Cursor[For],
    changing: Set[str],
) -> RequiredRegion:
    """Return the ranges that an access requires, given the iterators' values at its element."""
    region: RequiredRegion = {}
    for iterator in cursor.node.iters:
        required = _required_range(cursor, iterator, matched, access=access, target=target)
        if (
            required is not None
            and not buffers_accessed(required.base, product_of(required.count or ONE_FORM))
            & changing
        ):
            region[iterator.var] = required
    return region


def _required_range(
    cursor: Cursor[object],
    iterator: BlockIter,
    matched: Mapping[str, Expr],
    *,
    access: Access,
    target: Cursor[For],
) -> ProducedRange | None:
    """Return the range of an iterator in one iteration of the target loop; None for the whole domain."""
    value, loops = matched.get(iterator.var), loops_of(cursor.function)
    if value is None or not are_loads_safe_in_loops(
        cursor.function, value, (*target.loops, target.node)
    ):
        return None
    point = _point_of_range(cursor, access, value, target=target)
    # A loop over the region starts at its first value, which must be in the domain.
    if not point.proves(Compare("ge", value, ZERO)):
        return None
    is_within = point.proves(less_than(value, _domain_extent_at(iterator, matched)))
    inner = {loop.var for loop in access.context.loops}
    if not free_vars(value) & inner:
        return ProducedRange(value, ONE_FORM, frozenset(), is_within)
    form = form_of(value, {}, loops=loops)
    count = count_of_values(digits_of(form, inner, loops=loops).values())
    if lowest_loops(form, inner, loops=loops) is None or free_vars(product_of(count)) & inner:
        return None
    if not are_loads_safe_in_loops(
        cursor.function, product_of(count), (*target.loops, target.node)
    ):
        return None
    return ProducedRange(
        without_loop_terms(form, inner, loops=loops), count, frozenset(), is_within
    )


def _point_of_range(
    cursor: Cursor[object], access: Access, value: Expr, *, target: Cursor[For]
) -> ProgramPoint:
    """Return a program point with the conditions that hold for all values in a range.

    The loops that enumerate the range run; conditions of the access are not assumed, because the range also
    contains values without an access.
    """
    point = point_in_function(cursor.function)
    enumerating = (loop for loop in access.context.loops if loop.var in free_vars(value))
    for loop in (*target.loops, target.node, *enumerating):
        point.assume_loop(loop)
    return point


def _domain_extent_at(iterator: BlockIter, matched: Mapping[str, Expr]) -> Expr:
    """Return the extent of an iterator's domain at given values of other iterators."""
    extent: Expr = substitute(iterator.domain.extent, matched)
    return extent
