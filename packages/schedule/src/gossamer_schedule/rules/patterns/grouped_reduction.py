"""The pattern of a sum over the columns of a group of rows, for each row of the group (`row_groups`)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.conditional_bodies import split_condition
from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Expr, Function, Iteration, Store
from gossamer_schedule.rules.analysis.gathers import Gather, gather_of
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.own_rows import selects_own_row
from gossamer_schedule.rules.analysis.regular_reads import reads_regularly
from gossamer_schedule.rules.analysis.slots import slots_before


class GroupedReduction(msgspec.Struct, frozen=True):
    """`out[ROWS[g, r], k] = out[ROWS[g, r], k] op ...` over group g, the columns j of the group, row r of the
    group and feature k, where the values of ROWS are distinct.

    Names of loops, the block and the output are those of the loop stage.
    """

    block: str
    group: str
    position: str
    row: str
    feature: str
    height: int
    """The number of rows of a group."""
    features: int
    """The extent of the loop `feature`."""
    output: str
    dtype: str
    before: str | None
    """The text of the number of slots before a group."""
    gather: Gather
    """The rows of the dense operand."""
    is_initialized: bool
    """True if the output is initialized, so that it is not read."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        return (
            f"each row {self.row} of a group {self.group} reduces over {self.position}, the columns of the "
            f"group, into a row of {self.output} of its own"
        )


@single_iteration_pattern
def grouped_reduction(function: Function, iteration: Iteration) -> GroupedReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes = axes_of(function, iteration)
    if len(axes) != 4 or not _is_grouped(axes, iteration.kinds):
        return None
    height, features = integer_value(axes[2].length), integer_value(axes[3].length)
    store = _own_store(function, iteration)
    if store is None or not height or not features:
        return None
    output = buffers_by_name(function)[store.buffer]
    group, position, row, feature = iteration.vars
    return GroupedReduction(
        block=iteration.name,
        group=group,
        position=position,
        row=row,
        feature=feature,
        height=height,
        features=features,
        output=data_name(store.buffer),
        dtype=output.dtype,
        before=slots_before(axes[1], group, element=group),
        gather=gather_of(function, iteration, output, column=position, feature=feature),
        is_initialized=bool(iteration.init),
    )


def _is_grouped(axes: tuple[Axis, ...], kinds: str) -> bool:
    """Return whether axes are those of groups, the columns of a group, its rows and features."""
    groups, columns, rows, features = axes
    return (
        kinds == "SRSS"
        and is_dense_root(groups)
        and columns.parent == groups.name
        and indices_of(columns) is not None
        and is_varied(columns)
        and is_dense_root(rows)
        and is_dense_root(features)
    )


def _own_store(function: Function, iteration: Iteration) -> Store | None:
    """Return the reduction of an iteration, if each row of a group has a row of the output of its own, in
    which features are contiguous."""
    body, condition = split_condition(iteration.body)
    store = body[0] if len(body) == 1 else None
    if not isinstance(store, Store) or store.predicate is not None or len(store.indices) != 2:
        return None
    reduction = match_reduction(store)
    feature = index_var(iteration.vars[3])
    if reduction is None or store.indices[1] != feature:
        return None
    if not _initializes(iteration, store, condition) or not _has_features(
        function, iteration, store
    ):
        return None
    # The row of the output is proved to exist below; the other loads are checked here.
    terms = (replace(store, indices=(), value=reduction.value),)
    is_regular = reads_regularly(function, replace(iteration, body=terms), lane=iteration.vars[3])
    row = iteration.vars[2]
    is_own = is_regular and selects_own_row(function, iteration, store, condition, row=row)
    return store if is_own else None


def _initializes(iteration: Iteration, store: Store, condition: Expr | None) -> bool:
    """Return whether the init, if there is one, stores the element of the body under the same condition."""
    init, same = split_condition(iteration.init)
    return not init or (
        len(init) == 1
        and isinstance(init[0], Store)
        and (init[0].buffer, init[0].indices, same) == (store.buffer, store.indices, condition)
    )


def _has_features(function: Function, iteration: Iteration, store: Store) -> bool:
    """Return whether rows of the output are as long as the axis of features."""
    lengths = {axis.name: axis.length for axis in function.axes}
    last = axes_of(function, iteration)[3].length
    output = buffers_by_name(function).get(store.buffer)
    return output is not None and lengths[output.axes[-1]] == last
