"""The pattern of a reduction over the slots of a slice, for each row of the slice (SELL)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.guarded_bodies import without_guard
from gossamer_ir.analysis.reductions import Reduction, match_reduction
from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_full, is_varied, width_of
from gossamer_ir.core.build import ONE, integer_value
from gossamer_ir.core.lowered_names import data_name, indptr_name
from gossamer_ir.nodes import Axis, Function, Iteration, Store
from gossamer_schedule.rules.analysis.iterations import axes_of, of_one_iteration
from gossamer_schedule.rules.analysis.own_rows import selects_own_row
from gossamer_schedule.rules.analysis.regular_reads import is_dense_root, reads_regularly
from gossamer_schedule.rules.analysis.slots import slots_before
from gossamer_schedule.rules.analysis.taken_names import accumulator_names, has_taken


class SlicedReduction(msgspec.Struct, frozen=True):
    """`out[ROWS[s, r]] = out[ROWS[s, r]] op ...` over slice s, slot w, row r of the slice and the one element
    j of the row in the slot, where the values of ROWS are distinct.

    Names of loops, the block and the output are those of the loop stage. `height` is the number of rows of a
    slice. `before` is the text of the number of slots before a slice (None: unknown).
    """

    block: str
    slice: str
    slot: str
    row: str
    element: str
    height: int
    output: str
    before: str | None

    @property
    def text(self) -> str:
        """Return the pattern in words."""
        return (
            f"each row {self.row} of a slice {self.slice} reduces over {self.slot}, the slots of the slice, "
            f"into an element of {self.output} of its own"
        )


@of_one_iteration
def sliced_reduction(function: Function, iteration: Iteration) -> SlicedReduction | None:
    """Return the pattern of a coordinate module of one iteration; None for any other program."""
    axes = axes_of(function, iteration)
    if len(axes) != 4 or iteration.init or not _is_sliced(axes, iteration.kinds):
        return None
    slices, slots, rows, _ = axes
    body, guard = without_guard(iteration.body)
    reduction = _reduction(body)
    height = integer_value(rows.length)
    if reduction is None or height is None or height < 2:
        return None
    if not selects_own_row(function, iteration, reduction.store, guard):
        return None
    # The element of the output is proved to exist above; the other loads are checked here.
    terms = (replace(reduction.store, indices=(), value=reduction.value),)
    if not reads_regularly(function, replace(iteration, body=terms), lane=None):
        return None
    names = accumulator_names(iteration.name, reduction.store.buffer)
    names |= {indptr_name(axis.name) for axis in (slices, slots)}
    if has_taken(function, iteration, names=names):
        return None
    s, w, r, j = iteration.vars
    before = slots_before(slots, s, element=s)
    output = data_name(reduction.store.buffer)
    return SlicedReduction(iteration.name, s, w, r, j, height, output, before)


def _is_sliced(axes: tuple[Axis, ...], kinds: str) -> bool:
    """Return whether axes are those of slices, their slots, the rows of a slot and one element for each."""
    slices, slots, rows, elements = axes
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


def _reduction(body: tuple[object, ...]) -> Reduction | None:
    store = body[0] if len(body) == 1 else None
    if not isinstance(store, Store) or store.predicate is not None or len(store.indices) != 1:
        return None
    return match_reduction(store)
