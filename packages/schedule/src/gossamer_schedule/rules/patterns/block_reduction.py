"""The pattern of a sum over the dense blocks of a block row, for each row of the block row."""

from __future__ import annotations

import msgspec

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.axis_kinds import indices_of, is_dense_root, is_varied
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Expr, Function, Iteration, Load, SparseBuffer, Store, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.rules.analysis.iterations import (
    axes_of,
    buffers_by_name,
    single_iteration_pattern,
)
from gossamer_schedule.rules.analysis.outputs import dense_buffer, is_within, only_store
from gossamer_schedule.rules.analysis.slots import slots_before
from gossamer_schedule.rules.analysis.stored_places import block_and_place


class BlockReduction(msgspec.Struct, frozen=True):
    """`out[io, ii, k...] = sum over jo and ji of ...`, with jo in the fiber of block row io in a compressed
    varied axis, and dense axes for ii, ji and k.

    Names of loops, the block and the output are those of the loop stage.
    """

    block: str
    row: str
    position: str
    inner_row: str
    inner_position: str
    feature: str | None
    """None if there is no such loop."""
    height: int | None
    """The extent of `inner_row`; None if it is symbolic."""
    width: int | None
    """The extent of `inner_position`; None if it is symbolic."""
    features: int | None
    """The extent of `feature`; None if it is symbolic."""
    output: str
    dtype: str
    before: str | None
    """The text of the number of blocks before a block row; None if it is unknown."""
    order: tuple[str, ...]
    """The loops, outermost first."""
    counts_rows: bool
    """True if the element is `out[io * height + ii, k...]`."""
    operand: str | None
    """The one dense buffer that is read at a feature; None if there is none, or several."""
    operand_ndim: int
    """The number of dimensions of `operand`."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        element = ", ".join(name for name in (self.row, self.inner_row, self.feature) if name)
        return (
            f"each element {self.output}[{element}] reduces over {self.position} and "
            f"{self.inner_position}, the blocks of block row {self.row} and their columns"
        )


class _IteratedAxis(msgspec.Struct, frozen=True):
    """One axis of an iteration, its variable and its kind."""

    axis: Axis
    var: str
    kind: str


class _BlockRoles(msgspec.Struct, frozen=True):
    """The axes of an iteration by role."""

    row: _IteratedAxis
    fiber: Axis
    position: str
    inner_row: _IteratedAxis
    inner_position: _IteratedAxis
    feature: _IteratedAxis | None


@single_iteration_pattern
def block_reduction(function: Function, iteration: Iteration) -> BlockReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program.

    The axes of the iteration may be in any order. The indices of the output tell which of them are block
    rows, rows of a block and features.
    """
    store = _reduction_of(iteration)
    axes = axes_of(function, iteration)
    if store is None or not axes or not is_within(function, iteration, store):
        return None
    roles = _roles(tuple(map(_IteratedAxis, axes, iteration.vars, iteration.kinds)), store)
    return None if roles is None else _pattern(function, iteration, roles=roles, store=store)


def _reduction_of(iteration: Iteration) -> Store | None:
    """Return the one statement of an iteration, if it is a reduction into the element of the init, if any."""
    store = only_store(iteration)
    return None if store is None or match_reduction(store) is None else store


def _roles(iterated_axes: tuple[_IteratedAxis, ...], store: Store) -> _BlockRoles | None:
    """Return the roles of the axes; None if they are not those of a sum over blocks."""
    # The output tells rows from features: the order of the iteration's axes is free.
    lengths = {
        iterated.var: iterated.axis.length
        for iterated in iterated_axes
        if iterated.kind == "S" and is_dense_root(iterated.axis)
    }
    indices = (part for index in store.indices for part in block_and_place(index, lengths))
    element = [_selected_axis(index, iterated_axes) for index in indices]
    reduced = [axis for axis in iterated_axes if axis.kind == "R"]
    if len(reduced) != 2 or len(iterated_axes) != len(element) + 2:
        return None
    # The axis of the columns of a block is a dense root, that of blocks is not: blocks come first, whatever
    # the order in the program.
    reduced.sort(key=lambda iterated: is_dense_root(iterated.axis))
    position, inner = reduced
    fiber = position.axis
    if not is_varied(fiber) or indices_of(fiber) is None or not is_dense_root(inner.axis):
        return None
    match element:
        case [_IteratedAxis() as row, _IteratedAxis() as inner_row] if (
            row.axis.name == fiber.parent
        ):
            return _BlockRoles(row, fiber, position.var, inner_row, inner, None)
        case [_IteratedAxis() as row, _IteratedAxis() as inner_row, _IteratedAxis() as feature] if (
            row.axis.name == fiber.parent
        ):
            return _BlockRoles(row, fiber, position.var, inner_row, inner, feature)
    return None


def _selected_axis(index: Expr, iterated_axes: tuple[_IteratedAxis, ...]) -> _IteratedAxis | None:
    """Return the dense spatial axis whose variable is the index."""
    for axis in iterated_axes:
        if index == index_var(axis.var) and axis.kind == "S" and is_dense_root(axis.axis):
            return axis
    return None


def _pattern(
    function: Function, iteration: Iteration, *, roles: _BlockRoles, store: Store
) -> BlockReduction | None:
    output = dense_buffer(function, store.buffer)
    feature = roles.feature.var if roles.feature else None
    if output is None or not _is_contiguous(store, feature):
        return None
    operand = _operand(function, store, feature)
    return BlockReduction(
        block=iteration.name,
        row=roles.row.var,
        position=roles.position,
        inner_row=roles.inner_row.var,
        inner_position=roles.inner_position.var,
        feature=feature,
        height=integer_value(roles.inner_row.axis.length),
        width=integer_value(roles.inner_position.axis.length),
        features=integer_value(roles.feature.axis.length) if roles.feature else None,
        output=data_name(output.name),
        dtype=output.dtype,
        before=slots_before(roles.fiber, roles.row.var, element=roles.row.var),
        order=iteration.vars,
        counts_rows=len(store.indices) < (3 if feature else 2),
        operand=data_name(operand.name) if operand else None,
        operand_ndim=len(operand.axes) if operand else 0,
    )


def _operand(function: Function, store: Store, feature: str | None) -> SparseBuffer | None:
    """Return the one buffer with dense axes that is read at a feature; None if there is none or several."""
    loads = collect(Load, store.value)
    read = {load.buffer for load in loads if feature in free_vars(*load.indices)} - {store.buffer}
    read &= buffers_by_name(function).keys()
    return dense_buffer(function, read.pop()) if len(read) == 1 else None


def _is_contiguous(store: Store, feature: str | None) -> bool:
    """Return whether the feature only occurs as the last index of loads, so that features are contiguous."""
    loads = collect(Load, store.value)
    return all(
        feature not in free_vars(index) or (index is load.indices[-1] and isinstance(index, Var))
        for load in loads
        for index in load.indices
    )
