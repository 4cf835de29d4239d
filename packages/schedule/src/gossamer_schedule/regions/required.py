"""What one iteration of a loop consumes of the elements that an earlier block makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import reduce

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import Access, accesses
from gossamer_ir.analysis.linear_form import form_of
from gossamer_ir.analysis.loops import loops_of
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.arith.affine import UNIT, Affine, distance, product_of
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.dependence.access_forms import with_two_names
from gossamer_ir.dependence.mixed_radix import count_of, digits_of, lowest, without
from gossamer_ir.nodes import Block, BlockIter, Compare, Expr, For, Range, Store, Var
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.walk import collect, free_vars, map_children, resolve, substitute
from gossamer_schedule.bounds.predicates import below
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.bounds.safe_loads import is_safe_in
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.regions.iterator_dimensions import determined_by
from gossamer_schedule.regions.match_indices import match_all
from gossamer_schedule.regions.produced import ProducedRange

RequiredRegion = dict[str, ProducedRange]


def consumed_parts(
    cursor: Cursor, own: Sequence[For], target: Cursor, *, changing: Set[str]
) -> RequiredRegion:
    """The part of each iterator of a block over which it must run in one iteration of the target loop to
    make all that is read there; an iterator without a part must run over its whole domain. `changing`
    are the buffers that may not select parts."""
    block: Block = cursor.node
    names = {loop.var for loop in own}
    free = {
        item.var for item in block.iters if isinstance(item.value, Var) and item.value.name in names
    }
    parts: list[RequiredRegion] = []
    for access in accesses(target.node.body, values=values_at(target)):
        if access.buffer in outer_writes((block,)):
            is_named_twice = access.buffer in with_two_names(cursor.function)
            found = None if is_named_twice else _matched(cursor, access, free=free)
            if found is None:
                return {}
            parts.append(_parts(cursor, found, access, target=target, changing=changing))
    return _below_fixed(reduce(_common, parts), block, free) if parts else {}


def _below_fixed(parts: RequiredRegion, block: Block, free: Set[str]) -> RequiredRegion:
    """Those of iterators in one fibre: where one that a domain depends on has several values, the
    parts of some of its fibres need not be those of others."""
    kept: RequiredRegion = {}
    for item in block.iters:
        above = free_vars(item.domain) & free
        is_one_fibre = all(name in kept and kept[name].count == UNIT for name in above)
        if item.var in parts and is_one_fibre:
            kept[item.var] = parts[item.var]
    return kept


def _common(first: RequiredRegion, second: RequiredRegion) -> RequiredRegion:
    united = {name: _united(first[name], second[name]) for name in first.keys() & second.keys()}
    return {name: part for name, part in united.items() if part is not None}


def _united(first: ProducedRange, second: ProducedRange) -> ProducedRange | None:
    """The smallest part that holds two, where both are so many values a fixed number apart."""
    if first == second or first.count is None or second.count is None:
        return first if first == second else None
    apart = distance(second.base, first.base)
    if apart is None or not (first.count.is_constant and second.count.is_constant):
        return None
    if apart < 0:
        return _united(second, first)
    count = max(first.count.constant, apart + second.count.constant)
    return replace(first, count=Affine({}, count), is_within=first.is_within and second.is_within)


def _matched(cursor: Cursor, access: Access, *, free: set[str]) -> dict[str, Expr] | None:
    """The values of the iterators at which the block makes the element that is touched; those of a
    reduction have all values: others may contribute to it, and its init runs before the loops that it
    is fed by."""
    block: Block = cursor.node
    stores = collect(Store, block)
    made = [found for found in stores if found.buffer == access.buffer]
    if len({found.indices for found in made}) != 1 or not is_own_value(cursor, made[0]):
        return None
    points = tuple(at for at in access.indices if not isinstance(at, Range))
    fixed = {item.var: item.value for item in block.iters if item.var not in free}
    values = fixed | values_at(cursor)
    patterns = tuple(resolve(at, values) for at in made[0].indices)
    found = match_all(patterns, points, free=free)
    if found is None:
        return None
    spatial = {item.var for item in block.iters if item.kind == "S"}
    chosen = {name: value for name, value in found.items() if name in spatial}
    return chosen | {at: resolve(fixed[at], values) for at in fixed}


def is_own_value(cursor: Cursor, store: Store) -> bool:
    """Whether the element that a point stores to keeps the value that this point gives it: other points
    store to others, or all that store to it store the same."""
    block: Block = cursor.node
    determined = determined_by(cursor, store)
    if all(item.var in determined for item in block.iters if item.kind == "S"):
        return True
    return not block.init and block.predicate is None and is_function_of_element(block, store)


def is_function_of_element(block: Block, store: Store) -> bool:
    """Whether what a block stores is told by the indices of the element alone."""
    own = {item.var for item in block.iters}
    value = with_parts(store.value, {at: index_var("") for at in store.indices})
    return store in block.body and free_vars(value).isdisjoint(own)


def with_parts(node: Expr, parts: Mapping[Expr, Expr]) -> Expr:
    """An expression with others in the place of some parts of it."""
    if node in parts:
        return parts[node]
    return map_children(node, lambda child: with_parts(child, parts))


def _parts(
    cursor: Cursor, found: Mapping[str, Expr], access: Access, *, target: Cursor, changing: Set[str]
) -> RequiredRegion:
    parts: RequiredRegion = {}
    for item in cursor.node.iters:
        part = _part(cursor, item, found, access=access, target=target)
        if (
            part is not None
            and not mentioned((part.base, product_of(part.count or UNIT))) & changing
        ):
            parts[item.var] = part
    return parts


def _part(
    cursor: Cursor, item: BlockIter, found: Mapping[str, Expr], *, access: Access, target: Cursor
) -> ProducedRange | None:
    """The values that an iterator has in one iteration of the target loop."""
    value, loops = found.get(item.var), loops_of(cursor.function)
    if value is None or not is_safe_in(cursor.function, value, (*target.loops, target.node)):
        return None
    point = _point(cursor, access, value, target=target)
    if not point.proves(Compare("ge", value, ZERO)):
        return None
    is_within = point.proves(below(value, _extent(item, found)))
    inner = {loop.var for loop in access.held.loops}
    if not free_vars(value) & inner:
        return ProducedRange(value, UNIT, frozenset(), is_within)
    form = form_of(value, {}, loops=loops)
    count = count_of(digits_of(form, inner, loops=loops).values())
    if lowest(form, inner, loops=loops) is None or free_vars(product_of(count)) & inner:
        return None
    if not is_safe_in(cursor.function, product_of(count), (*target.loops, target.node)):
        return None
    return ProducedRange(without(form, inner, loops=loops), count, frozenset(), is_within)


def _point(cursor: Cursor, access: Access, value: Expr, *, target: Cursor) -> ProgramPoint:
    """What is known of all values of a part: that the loops run which make them, not that something is
    touched at each."""
    point = point_in(cursor.function)
    making = (loop for loop in access.held.loops if loop.var in free_vars(value))
    for loop in (*target.loops, target.node, *making):
        point.assume_loop(loop)
    return point


def _extent(item: BlockIter, found: Mapping[str, Expr]) -> Expr:
    """The extent of an iterator's domain at some values of others."""
    extent: Expr = substitute(item.domain.extent, found)
    return extent
