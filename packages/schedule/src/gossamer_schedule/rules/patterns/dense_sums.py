"""The pattern of a reduction over axes of any kinds, for each element at the places of dense axes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.conditional_bodies import split_condition
from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Expr, Function, Iteration, Store
from gossamer_ir.transform.split_init import axes_of_init, init_visits_others
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.walk import contains
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import is_within, only_store
from gossamer_schedule.rules.analysis.stored_places import place_vars
from gossamer_support.items_by_name import items_by_name


class DenseSums(msgspec.Struct, frozen=True):
    """`out[s0, s1, ...] = reduction over all other variables of ...`, with `s0, s1, ...` along dense axes.

    An index may count over two of them, `s0 * 4 + s1`. Names of loops, the block and the output are those of
    the loop stage.
    """

    block: str
    places: tuple[str, ...]
    """The variables that select an element, in the order of the indices."""
    extents: tuple[int | None, ...]
    """The extents of their loops; None where they are symbolic."""
    terms: tuple[str, ...]
    """The variables of the terms of an element, outermost first."""
    output: str
    has_elements: bool
    """True if every element at the places exists, so that it may be read where it has no terms."""
    init_loops: tuple[str, ...]
    """The variables of the loops of the init, if it has loops of its own: it visits the places below an axis
    of terms that may have no elements."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        places = ", ".join(self.places)
        return f"each element of {self.output} at {places} reduces over {', '.join(self.terms)}"


@single_iteration_pattern
def dense_sums(function: Function, iteration: Iteration) -> DenseSums | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program.

    >>> from gossamer_ir.script import parse_module
    >>> found = dense_sums(parse_module('''
    ... @T.prim_func
    ... def sums(a: T.handle, y: T.handle, ptr: T.handle, m: T.int64, most: T.int64, z: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 2})
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.dense_varied(I, (most, z), ptr)
    ...     R = T.sp.dense_fixed(4)
    ...     A = T.sp.match_buffer(a, (I, J, R), "float32")
    ...     Y = T.sp.match_buffer(y, (I, R), "float32")
    ...     with T.sp.iteration([I, J, R], "SRS", "sums") as [i, j, r]:
    ...         with T.init():
    ...             Y[i, r] = 0.0
    ...         Y[i, r] = Y[i, r] + A[i, j, r]
    ... '''))
    >>> found.places, found.extents, found.terms
    (('i', 'r'), (None, 4), ('j',))
    """
    store, axes = _store_of(iteration), axes_of(function, iteration)
    if store is None or not axes:
        return None
    by_kind = dict(zip(iteration.vars, iteration.kinds, strict=True))
    lengths: dict[str, Expr] = {
        var: axis.length
        for var, axis in zip(iteration.vars, axes, strict=True)
        if by_kind[var] == "S" and is_full(axis)
    }
    places = place_vars(store.indices, lengths)
    terms = tuple(var for var in iteration.vars if by_kind[var] == "R")
    if places is None or not terms or len(places) + len(terms) != len(iteration.vars):
        return None
    if store.buffer not in buffers_by_name(function):
        return None
    return DenseSums(
        block=iteration.name,
        places=places,
        extents=tuple(integer_value(lengths[var]) for var in places),
        terms=terms,
        output=data_name(store.buffer),
        has_elements=_has_elements(function, iteration, store),
        init_loops=_init_loops(iteration, items_by_name(function.axes)),
    )


def _init_loops(iteration: Iteration, by_name: Mapping[str, Axis]) -> tuple[str, ...]:
    if not iteration.init or not init_visits_others(iteration, by_name):
        return ()
    return tuple(var for _, var in axes_of_init(iteration, by_name))


def _store_of(iteration: Iteration) -> Store | None:
    """Return the one reduction of an iteration, which may be under a condition that does not read its output,
    such as that of rows beyond the last one; None if there is none, or an init is under a condition, too."""
    body, condition = split_condition(iteration.body)
    store = only_store(replace(iteration, body=body))
    if store is None or match_reduction(store) is None or store.predicate is not None:
        return None
    if condition is None:
        return store
    return None if iteration.init or store.buffer in buffers_read(condition) else store


def _has_elements(function: Function, iteration: Iteration, store: Store) -> bool:
    _, condition = split_condition(iteration.body)
    # A condition that reads memory remains in the body of the block: copies of elements have no part in it.
    if condition is None or contains(READS, condition):
        return is_within(function, iteration, store)
    return is_within(function, iteration, store, where=condition)
