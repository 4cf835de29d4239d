"""The pattern of a reduction over the slots of a slice, for each row or block row of the slice (SELL)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.statements.conditional_bodies import split_condition
from gossamer_ir.analysis.statements.reductions import Reduction, match_reduction
from gossamer_ir.core.axis_kinds import (
    indices_of,
    indptr_of,
    is_dense_root,
    is_full,
    is_varied,
    width_of,
)
from gossamer_ir.core.build import ONE, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.lowered_names import data_name
from gossamer_ir.nodes import Axis, Function, Iteration, Store
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.rules.analysis.iterations import axes_of, single_iteration_pattern
from gossamer_schedule.rules.analysis.own_rows import numbers_own_row, selects_own_row
from gossamer_schedule.rules.analysis.regular_reads import reads_in_bounds
from gossamer_schedule.rules.analysis.slots import slots_before


class SlicedReduction(msgspec.Struct, frozen=True):
    """`out[ROWS[s, r]] = out[ROWS[s, r]] op ...` over slice s, slot w, row r of the slice and the one element
    j of the row in the slot, where the values of ROWS are distinct.

    Where slots are diagonals, it is `out[s * height + r] = ...`, and there is no j. In slices of block rows,
    whose slots are blocks, it is `out[ROWS[s, r] * block_height + ii] = ...`, also over the columns of a
    block. Names of loops, the block and the output are those of the loop stage.
    """

    block: str
    slice: str
    slot: str
    row: str
    element: str | None
    """The loop over the one element of a row in a slot; None if slots are diagonals."""
    inner_row: str | None
    """The loop over the rows of a block; None if slots are elements."""
    inner_column: str | None
    """The loop over the columns of a block; None if slots are elements."""
    height: int
    """The number of rows of a slice."""
    block_height: int
    """The number of rows of a block; 1 if slots are elements."""
    block_width: int
    """The number of columns of a block; 1 if slots are elements."""
    output: str
    dtype: str
    before: str | None
    """The text of the number of slots before a slice; None if it is unknown."""

    @property
    def text(self) -> str:
        """The pattern in words."""
        rows = f"block row {self.row}" if self.inner_row else f"row {self.row}"
        return (
            f"each {rows} of a slice {self.slice} reduces over {self.slot}, the slots of the slice, "
            f"into {'elements' if self.inner_row else 'an element'} of {self.output} of its own"
        )


class _SliceRoles(msgspec.Struct, frozen=True):
    """The variables of an iteration by role, and the axes of slices, slots and rows."""

    slice: str
    slot: str
    row: str
    element: str
    inner_row: str | None
    inner_column: str | None
    axis_of_var: dict[str, Axis]

    def extent(self, var_name: str | None) -> int | None:
        """Return the constant length of an axis, 1 for none; None if it is symbolic."""
        return 1 if var_name is None else integer_value(self.axis_of_var[var_name].length)


@single_iteration_pattern
def sliced_reduction(function: Function, iteration: Iteration) -> SlicedReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    body, condition = split_condition(iteration.body)
    reduction = _reduction(body)
    roles = None if reduction is None else _roles(function, iteration, reduction.store)
    if reduction is None or roles is None:
        return None
    height, block_height, block_width = map(
        roles.extent, (roles.row, roles.inner_row, roles.inner_column)
    )
    if height is None or height < 2 or not block_height or not block_width:
        return None
    if not selects_own_row(function, iteration, reduction.store, condition, row=roles.row):
        return None
    # The element of the output is proved to exist above; the other loads are checked here.
    terms = (replace(reduction.store, indices=(), value=reduction.value),)
    if not reads_in_bounds(function, replace(iteration, body=terms)):
        return None
    return SlicedReduction(
        block=iteration.name,
        slice=roles.slice,
        slot=roles.slot,
        row=roles.row,
        element=roles.element,
        inner_row=roles.inner_row,
        inner_column=roles.inner_column,
        height=height,
        block_height=block_height,
        block_width=block_width,
        output=data_name(reduction.store.buffer),
        dtype=dtype_of(reduction.store.value),
        before=slots_before(roles.axis_of_var[roles.slot], roles.slice, element=roles.slice),
    )


@single_iteration_pattern
def sliced_diagonals(function: Function, iteration: Iteration) -> SlicedReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program.

    It is `out[s * height + r] = out[s * height + r] op ...` over slice s, diagonal d and row r of the slice.
    """
    body, condition = split_condition(iteration.body)
    reduction = _reduction(body)
    axes = axes_of(function, iteration)
    if reduction is None or not _are_sliced(axes, kinds=iteration.kinds):
        return None
    (s, d, r), height = iteration.vars, integer_value(axes[2].length)
    if height is None or height < 2:
        return None
    if not numbers_own_row(function, iteration, reduction.store, condition, size=height):
        return None
    # The element of the output exists where the condition holds; the other loads are checked here.
    terms = (replace(reduction.store, indices=(), value=reduction.value),)
    if not reads_in_bounds(function, replace(iteration, body=terms), condition=condition):
        return None
    return SlicedReduction(
        block=iteration.name,
        slice=s,
        slot=d,
        row=r,
        element=None,
        inner_row=None,
        inner_column=None,
        height=height,
        block_height=1,
        block_width=1,
        output=data_name(reduction.store.buffer),
        dtype=dtype_of(reduction.store.value),
        before=slots_before(axes[1], s, element=s),
    )


def _roles(function: Function, iteration: Iteration, store: Store) -> _SliceRoles | None:
    """Return the roles of the variables; None if the axes are not those of slices."""
    axis_of_var = dict(zip(iteration.vars, axes_of(function, iteration), strict=False))
    kinds = dict(zip(iteration.vars, iteration.kinds, strict=True))
    # The axes of a block have no parents; they are stored before the rows of a slice, which are lanes.
    inner = [name for name in [*axis_of_var][2:] if is_dense_root(axis_of_var[name])]
    outer = [name for name in axis_of_var if name not in inner]
    if iteration.init or len(outer) != 4 or len(inner) not in (0, 2):
        return None
    s, w, r, j = outer
    if not _is_sliced(
        *(axis_of_var[name] for name in outer), kinds="".join(kinds[n] for n in outer)
    ):
        return None
    if not inner:
        return _SliceRoles(s, w, r, j, None, None, axis_of_var)
    inner.sort(key=lambda name: name not in free_vars(*store.indices))
    row, column = inner
    is_reduced = kinds[column] == "R" or axis_of_var[column].length == ONE
    is_block = kinds[row] == "S" and is_reduced
    return _SliceRoles(s, w, r, j, row, column, axis_of_var) if is_block else None


def _is_sliced(slices: Axis, slots: Axis, rows: Axis, elements: Axis, *, kinds: str) -> bool:
    """Return whether axes are those of slices, their slots, the rows of a slot and one element for each."""
    return (
        kinds in ("SRSR", "SRSS")
        and is_dense_root(slices)
        and slots.parent == slices.name
        and indices_of(slots) is None
        and is_varied(slots)
        and indptr_of(slots) is not None
        and is_full(rows)
        and rows.parent == slots.name
        and elements.parent == rows.name
        and indices_of(elements) is not None
        and not is_varied(elements)
        and width_of(elements) == ONE
    )


def _are_sliced(axes: tuple[Axis, ...], *, kinds: str) -> bool:
    """Return whether axes are those of slices, of their diagonals, and of the rows of a slice."""
    if kinds != "SRS" or len(axes) != 3:
        return False
    slices, diagonals, rows = axes
    return (
        is_dense_root(slices)
        and diagonals.parent == slices.name
        and indices_of(diagonals) is not None
        and is_varied(diagonals)
        and indptr_of(diagonals) is not None
        and is_dense_root(rows)
    )


def _reduction(body: tuple[object, ...]) -> Reduction | None:
    store = body[0] if len(body) == 1 else None
    if not isinstance(store, Store) or store.predicate is not None or len(store.indices) != 1:
        return None
    return match_reduction(store)
