"""Produced region of a loop iteration, if an index array selects the elements.

`C[P[p + i], k]` is a different row in each iteration of `i` if P holds each coordinate once. If a block
reads the rows `P[p + i_c]`, iteration `i` then produces exactly the row of `i_c == i`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

from gossamer_ir.analysis.invariants import invariant_facts
from gossamer_ir.arith.affine import ONE_FORM
from gossamer_ir.core.build import index_var, integer_value, unconditional_extent, var_name
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import coordinate_of
from gossamer_ir.dependence.injectivity import is_injective
from gossamer_ir.nodes import Block, Expr, Fact, For, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.regions.produced import ProducedRange


def indirect_ranges(
    cursor: Cursor[Block],
    own_loops: Sequence[For],
    *,
    stores: Sequence[AccessForm],
    path: Sequence[For],
) -> dict[str, ProducedRange]:
    """Return the single value of each iterator for which the block reads what one iteration of the path
    produces.

    All producers must store to one coordinate of some dimension, a different one in each iteration of the
    path. The result is empty if there is no such dimension, or if the block reads other coordinates there.
    """
    facts = invariant_facts(cursor.function)
    read = _read_coordinates(cursor, stores[0].buffer)
    for dimension, coordinate in enumerate(read):
        written = {coordinate_of(store.indices[dimension]) for store in stores}
        (stored,) = written if len(written) == 1 else (None,)
        if stored is not None and coordinate is not None and _is_injective(stored, path, facts):
            names = _loop_replacements(coordinate, stored, own_loops=own_loops, path=path)
            return _single_values(cursor, own_loops, names, path=path)
    return {}


def _read_coordinates(cursor: Cursor[Block], buffer_name: str) -> tuple[Expr | None, ...]:
    """Return the coordinates at which the block reads a buffer, in terms of its loops."""
    values = values_at(cursor) | {iterator.var: iterator.value for iterator in cursor.node.iters}
    accesses = access_forms(
        cursor.node.body, {buffer_name}, values=values, function=cursor.function
    )
    reads = {tuple(coordinate_of(at) for at in access.indices) for access in accesses}
    return reads.pop() if len(reads) == 1 else ()


def _is_injective(stored: Expr, path: Sequence[For], facts: Sequence[Fact]) -> bool:
    """Return whether the coordinate is injective in the only loop of the path with several iterations that
    it depends on."""
    selecting = [loop for loop in path if integer_value(loop.extent) != 1]
    used = [loop for loop in selecting if loop.var in free_vars(stored)]
    return len(used) == 1 and is_injective(stored, used[0], facts)


def _loop_replacements(
    read: Expr, stored: Expr, *, own_loops: Sequence[For], path: Sequence[For]
) -> dict[str, Expr]:
    """Return the loop of the path that replaces each loop of the block so that `read` becomes `stored`."""
    used = [loop.var for loop in own_loops if loop.var in free_vars(read)]
    # A block has few loops, so that all orders can be tried.
    for order in permutations([loop.var for loop in path], len(used)):
        names: dict[str, Expr] = {old: index_var(new) for old, new in zip(used, order, strict=True)}
        if substitute(read, names) == stored:
            return names
    return {}


def _single_values(
    cursor: Cursor[Block],
    own_loops: Sequence[For],
    names: Mapping[str, Expr],
    *,
    path: Sequence[For],
) -> dict[str, ProducedRange]:
    extents = {loop.var: unconditional_extent(loop.extent) for loop in path}
    own_extents = {
        loop.var: substitute(unconditional_extent(loop.extent), names) for loop in own_loops
    }
    ranges: dict[str, ProducedRange] = {}
    for iterator in cursor.node.iters:
        name = var_name(iterator.value)
        if name is not None and isinstance(replacement := names.get(name), Var):
            # With another extent the loop of the path may run beyond the domain of the block.
            is_within = own_extents[name] == extents[replacement.name]
            ranges[iterator.var] = ProducedRange(
                replacement, ONE_FORM, frozenset({replacement.name}), is_within
            )
    return ranges
