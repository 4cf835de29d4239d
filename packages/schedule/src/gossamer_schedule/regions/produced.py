"""Produced region: the elements that one iteration of a loop writes and a later block reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import msgspec

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.accesses.linear_form import LinearForm, form_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.arith.affine import ONE_FORM, Affine, affine_of
from gossamer_ir.core.build import ZERO, unconditional_extent
from gossamer_ir.dependence.access_forms import buffers_with_aliasing_indices
from gossamer_ir.dependence.mixed_radix import (
    count_of_values,
    digits_of,
    is_covering,
    loops_in_digit_order,
    loops_that_repeat,
    number_from_digits,
)
from gossamer_ir.nodes import Block, BlockIter, Expr, For, Load, Range, Var
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at


class ProducedRange(msgspec.Struct, frozen=True):
    """The values of one iterator that one iteration of a loop produces: `count` values from `base` on.

    `count` is None if the iteration produces the whole domain. `path` names the loops that `base` depends
    on. If `is_within` is false, some of the values may lie outside of the domain.
    """

    base: Expr
    count: Affine | None
    path: frozenset[str]
    is_within: bool


def iterator_indexed_dimensions(
    cursor: Cursor[Block], buffer_name: str
) -> list[tuple[int, BlockIter]]:
    """Return the dimensions in which the block indexes the buffer by one of its iterators.

    Empty if the block reads the buffer at several indices.
    """
    by_name = {iterator.var: iterator for iterator in cursor.node.iters}
    loads = {load.indices for load in collect(Load, cursor.node) if load.buffer == buffer_name}
    if len(loads) != 1:
        return []
    (indices,) = loads
    return [
        (dimension, by_name[at.name])
        for dimension, at in enumerate(indices)
        if isinstance(at, Var) and at.name in by_name
    ]


def producer_forms(
    cursor: Cursor[Block], buffer_name: str, target: Cursor[For]
) -> dict[str, list[LinearForm | None]]:
    """Return, for each iterator of the block, the linear form of its value at each store below the target.

    Empty unless the indices at which the block reads the buffer determine all of its iterators.
    """
    # Imported late: a block that copies a buffer indexes it by its iterators.
    from gossamer_schedule.regions.iterator_dimensions import determined_iters
    from gossamer_schedule.regions.match_indices import match_all

    loads = {load for load in collect(Load, cursor.node) if load.buffer == buffer_name}
    names, loops = {iterator.var for iterator in cursor.node.iters}, loops_of(cursor.function)
    if buffer_name in buffers_with_aliasing_indices(cursor.function):
        return {}
    # Loads at two places, as in a stencil, need the products of several iterations.
    if len(loads) != 1 or not names <= determined_iters(cursor, next(iter(loads))):
        return {}
    (load,) = loads
    forms: dict[str, list[LinearForm | None]] = {name: [] for name in names}
    for access in accesses(target.node.body, values=values_at(target)):
        if access.buffer == buffer_name and access.is_store:
            points = tuple(at for at in access.indices if not isinstance(at, Range))
            matched = match_all(load.indices, points, free=names)
            if matched is None or matched.keys() != names:
                return {}
            for name, value in matched.items():
                forms[name].append(form_of(value, {}, loops=loops))
    return forms


def produced_range(
    cursor: Cursor[Block],
    iterator: BlockIter,
    *,
    forms: Sequence[LinearForm | None],
    path: Sequence[For],
    known_ranges: Mapping[str, ProducedRange],
) -> ProducedRange | None:
    """Return the range of an iterator that one iteration of the path produces, from the producers' indices
    along its dimension; None if it is not known."""
    loops, names = loops_of(cursor.function), {loop.var for loop in path}
    plain = [form for form in forms if form is not None]
    if len(plain) < len(forms) or any(form.opaque & names for form in plain):
        return None
    # The loops of the path do not select this iterator: each iteration produces its whole domain.
    if all(form.terms.keys().isdisjoint(names) for form in plain):
        return ProducedRange(ZERO, None, frozenset(), is_within=True)
    # Producers with different digits of the path write different ranges in one iteration.
    if len({_common_shape(form, names, loops=loops) for form in plain}) != 1:
        return None
    if any(_outer_digits(form, names, loops=loops) is None for form in plain):
        return None
    # In terms of the producers' loops, since those of the consumer are not around the new place.
    extent = _domain_extent(cursor, iterator, known_ranges=known_ranges)
    # Values that no iteration produces would be left out by the moved block.
    if not is_covering(plain[0], extent, loops=loops):
        return None
    return _range_of_form(plain[0], names, extent, loops=loops)


def _common_shape(form: LinearForm, names: Set[str], *, loops: Mapping[str, For]) -> object:
    """Return the common properties of all producers: the digits of the path, and the count of the others."""
    fixed = frozenset((name, form.terms[name]) for name in form.terms.keys() & names)
    return (fixed, _digit_count(form, form.terms.keys() - names, loops=loops))


def _digit_count(form: LinearForm, names: Set[str], *, loops: Mapping[str, For]) -> Affine:
    return count_of_values(digits_of(form, names, loops=loops).values())


def _outer_digits(
    form: LinearForm, names: Set[str], *, loops: Mapping[str, For]
) -> tuple[str, ...] | None:
    """Return the path's loops from the lowest digit up; None unless they are above all other digits.

    Otherwise the values of one iteration are not consecutive. Loops with one iteration may be anywhere, as
    their digit is 0.
    """
    digits = loops_in_digit_order(form, loops=loops)
    if digits is None:
        return None
    order = loops_that_repeat(digits, loops=loops)
    count = sum(name not in names for name in order)
    return None if any(name in names for name in order[:count]) else order[count:]


def _domain_extent(
    cursor: Cursor[Block], iterator: BlockIter, *, known_ranges: Mapping[str, ProducedRange]
) -> Expr:
    """Return the extent of an iterator's domain in terms of the producers' loops."""
    values: dict[str, Expr] = {iterator.var: iterator.value for iterator in cursor.node.iters}
    values |= {name: part.base for name, part in known_ranges.items() if part.count == ONE_FORM}
    resolved: Expr = resolve(iterator.domain.extent, values | values_at(cursor))
    return resolved


def _range_of_form(
    form: LinearForm, names: Set[str], extent: Expr, *, loops: Mapping[str, For]
) -> ProducedRange:
    outer = _outer_digits(form, names, loops=loops) or ()
    digits = digits_of(form, names, loops=loops)
    base = number_from_digits({name: digits[name] for name in reversed(outer)})
    whole = _digit_count(form, form.terms.keys(), loops=loops)
    count = _digit_count(form, form.terms.keys() - names, loops=loops)
    is_within = whole == affine_of(unconditional_extent(extent))
    return ProducedRange(base, count, frozenset(outer), is_within)
