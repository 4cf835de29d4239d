"""Products of strips of rows, whose columns are stored in groups (SR-BCRS), and a dense matrix.

A group is a block whose columns are any, instead of adjacent ones: tensor cores multiply both, and the rows
of the dense matrix are gathered when they are copied to shared memory or loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied, width_of
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Function, Iteration, Load, Module, Store
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration
from gossamer_schedule.rules.analysis.outputs import (
    dense_buffer,
    is_within,
    may_reassociate,
    only_store,
)
from gossamer_schedule.rules.analysis.product_factors import product_factors
from gossamer_schedule.rules.analysis.stored_places import place_vars
from gossamer_schedule.rules.decisions.scalable_vectors.block_product import BlockProduct
from gossamer_schedule.rules.patterns.block_reduction import BlockReduction
from gossamer_support.items_by_name import items_by_name


class _Strip(NamedTuple):
    """The variables of an iteration by role, and its axes."""

    row: str
    group: str
    inner_row: str
    slot: str
    feature: str
    by_var: Mapping[str, Axis]

    @property
    def element(self) -> tuple[str, ...]:
        """The variables that select an element of a group."""
        return self.row, self.group, self.inner_row, self.slot


def strip_product(module: Module) -> BlockProduct | None:
    """Return the pattern of a coordinate module of one iteration, in which groups of columns take the place
    of blocks; None for any other program, or if slots may be unused: these have no row of the dense matrix.

    >>> from gossamer_testkit.sr_bcrs_product import sr_bcrs_product
    >>> found = strip_product(sr_bcrs_product("float16", height=16, width=16))
    >>> found.operands, found.sums.position, found.sums.inner_position, found.sums.width
    ('float16', 'jo', 'ji', 16)
    """
    single = single_iteration(module)
    store = None if single is None else only_store(single[1])
    if single is None or store is None or not may_reassociate(single[1]):
        return None
    function, iteration = single
    reduction, strip = match_reduction(store), _strip(function, iteration, store=store)
    output = dense_buffer(function, store.buffer)
    if reduction is None or reduction.op != "add" or strip is None or output is None:
        return None
    factors = product_factors(reduction.value, dtype=output.dtype)
    for block, dense in () if factors is None else factors.orders:
        if factors is not None and _is_product(function, strip, block=block, dense=dense):
            sums = _sums(iteration, strip, store=store, dtype=output.dtype, operand=dense.buffer)
            blocks, has_init = data_name(block.buffer), bool(iteration.init)
            return BlockProduct(
                sums, strip.feature, factors.operands, block.dtype, blocks, has_init
            )
    return None


def _strip(function: Function, iteration: Iteration, *, store: Store) -> _Strip | None:
    """Return the variables by role; None if the axes are not those of strips."""
    axes = dict(zip(iteration.vars, axes_of(function, iteration), strict=False))
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    dense = {name: axis.length for name, axis in axes.items() if is_dense_root(axis)}
    spatial = {name: length for name, length in dense.items() if kinds[name] == "S"}
    places, terms = (
        place_vars(store.indices, spatial),
        [name for name in axes if kinds[name] == "R"],
    )
    if len(axes) != 5 or places is None or len(places) != 3 or len(terms) != 2:
        return None
    if store.predicate is not None or not is_within(function, iteration, store):
        return None
    row, inner_row, feature = places
    for group, slot in (terms, reversed(terms)):
        strip = _Strip(row, group, inner_row, slot, feature, axes)
        if _has_used_groups(strip):
            return strip
    return None


def _has_used_groups(strip: _Strip) -> bool:
    """Return whether a strip has a fiber of groups, with a column in each of their slots."""
    groups, slots = strip.by_var[strip.group], strip.by_var[strip.slot]
    columns = indices_of(slots)
    is_tree = (groups.parent, slots.parent) == (strip.by_var[strip.row].name, groups.name)
    is_group = is_varied(groups) and indices_of(groups) is None
    is_used = columns is not None and not columns.padded and not is_varied(slots)
    return is_tree and is_group and is_used


def _is_product(function: Function, strip: _Strip, *, block: Load, dense: Load) -> bool:
    """Return whether two factors are an element of a group, and one of the row of its column."""
    buffer = dense_buffer(function, dense.buffer)
    if buffer is None or block.indices != tuple(map(index_var, strip.element)):
        return False
    lengths = items_by_name(function.axes)
    shape = [lengths[name].length for name in buffer.axes]
    needed = [strip.by_var[name].length for name in (strip.slot, strip.feature)]
    return dense.indices == (index_var(strip.slot), index_var(strip.feature)) and shape == needed


def _sums(
    iteration: Iteration, strip: _Strip, *, store: Store, dtype: str, operand: str
) -> BlockReduction:
    by_var = strip.by_var
    return BlockReduction(
        block=iteration.name,
        row=strip.row,
        position=strip.group,
        inner_row=strip.inner_row,
        inner_position=strip.slot,
        feature=strip.feature,
        height=integer_value(by_var[strip.inner_row].length),
        width=integer_value(width_of(by_var[strip.slot])),
        features=integer_value(by_var[strip.feature].length),
        output=data_name(store.buffer),
        dtype=dtype,
        before=None,
        order=iteration.vars,
        counts_rows=len(store.indices) < 3,
        operand=data_name(operand),
        operand_ndim=2,
    )
